import type { Charge, Counter, Decision } from '../../core/driver.js';
import type { LocalFallback } from './local-fallback.js';

/** What a denial for an unreachable store suggests to wait. */
const RETRY_AFTER_MS = 1_000;

/**
 * What a group is answered while Redis is away. Mostly all of it falls back; where policies want different things, the
 * strictest decides: nothing is taken where one throws or denies. Policies in shadow mode have no say.
 * @throws the error where a policy wants that, and where none falls back
 */
export function withoutStore(
  group: readonly Charge[],
  local: LocalFallback,
  error: unknown,
): readonly Decision[] {
  if (group.every(fallsBack)) return local.decide(group);
  const wanted = (answer: string) =>
    group.some(({ policy }) => policy.mode === 'enforce' && policy.onUnavailable === answer);
  if (wanted('throw') || !group.some(fallsBack)) throw error;
  const falling = group.filter(fallsBack);
  const decisions = wanted('deny')
    ? falling.map((charge) => ({ ...local.peek(charge), receipt: undefined }))
    : local.decide(falling);
  let next = 0;
  return group.map((charge) => (fallsBack(charge) ? decisions[next++]! : unanswered(charge)));
}

function fallsBack({ policy }: Charge): boolean {
  return policy.onUnavailable === 'fallback';
}

/** The decision of a policy that does without a store. */
function unanswered({ policy, quota }: Counter): Decision {
  const allowed = policy.onUnavailable === 'allow';
  return {
    allowed,
    remaining: 0,
    retryAfterMs: allowed ? 0 : RETRY_AFTER_MS,
    resetAfterMs: quota.windowMs,
    delayMs: 0,
    servedBy: 'fallback',
    receipt: undefined,
    storeFailed: true,
  };
}
