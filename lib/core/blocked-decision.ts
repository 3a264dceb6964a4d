import type { Decision } from './driver.js';

/** What a decision becomes for a subject that is blocked for `blockedMs`. */
export function blockedDecision(decision: Decision, blockedMs: number): Decision {
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
