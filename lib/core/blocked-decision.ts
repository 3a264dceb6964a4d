import type { Decision } from './driver.js';

/** The denial of a subject that is blocked for so long. */
export function blockedFor(decision: Decision, blockedMs: number): Decision {
  return {
    ...decision,
    allowed: false,
    remaining: 0,
    retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
    resetAfterMs: Math.max(decision.resetAfterMs, blockedMs),
    delayMs: 0,
    receipt: undefined,
  };
}
