import type { Charge, Decision } from './driver.js';

/** A denial while the store can't answer knows no better time to try again. */
const RETRY_AFTER_MS = 1_000;

/**
 * What a group is answered while the store can't be reached, by each policy's `onUnavailable`. Policies in shadow mode
 * have no say.
 * @throws the error where an enforced policy wants that, or wants a fallback: a driver that has one did not get here
 */
export function decisionsWithoutStore(charges: readonly Charge[], error: unknown): readonly Decision[] {
  const refuses = ({ policy: { mode, onUnavailable } }: Charge) =>
    mode === 'enforce' && (onUnavailable === 'throw' || onUnavailable === 'fallback');
  if (charges.some(refuses)) throw error;
  return charges.map((charge) => unanswered(charge, charge.policy.onUnavailable === 'allow'));
}

/** The decision of a store that did not answer. Where calls go on uncounted, all of the quota is there. */
export function unanswered({ policy, quota }: Charge, allowed: boolean): Decision {
  return {
    allowed,
    remaining: allowed ? policy.arithmetic.capacity(quota) : 0,
    retryAfterMs: allowed ? 0 : RETRY_AFTER_MS,
    resetAfterMs: allowed ? 0 : quota.windowMs,
    delayMs: 0,
    servedBy: 'fallback',
    receipt: undefined,
  };
}
