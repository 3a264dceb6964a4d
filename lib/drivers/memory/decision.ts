import {
  ALLOWED,
  CHARGED_AT,
  DELAY,
  MARK,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Quota,
} from '../../core/algorithm.js';
import type { Decision } from '../../core/driver.js';

/** An algorithm's outcome as a driver answers it. `serial` tells the charge apart from those before a reset. */
export function decisionOf(outcome: Float64Array, quota: Quota, cost: number, serial: number): Decision {
  const allowed = outcome[ALLOWED] === 1;
  return {
    allowed,
    remaining: outcome[REMAINING]!,
    retryAfterMs: outcome[RETRY_AFTER]!,
    resetAfterMs: outcome[RESET_AFTER]!,
    delayMs: outcome[DELAY]!,
    servedBy: 'memory',
    receipt: allowed
      ? {
          cost,
          limit: quota.limit,
          windowMs: quota.windowMs,
          chargedAt: outcome[CHARGED_AT]!,
          mark: outcome[MARK]!,
          serial,
        }
      : undefined,
  };
}
