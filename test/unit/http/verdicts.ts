import type { Verdict } from '../../../lib/core/verdict.js';

/** A verdict of 5 a minute, all left, but for what is given. */
export function verdict(given: Partial<Verdict> = {}): Verdict {
  return {
    allowed: true,
    policy: 'login',
    subject: 'ip:203.0.113.7',
    limit: 5,
    remaining: 5,
    retryAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    servedBy: 'memory',
    ...given,
  };
}

export const denied = (given: Partial<Verdict> = {}): Verdict =>
  verdict({ allowed: false, remaining: 0, retryAfterMs: 20_001, resetAfterMs: 60_000, ...given });
