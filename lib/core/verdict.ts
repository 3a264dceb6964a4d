/** Where a verdict was decided. */
export type ServedBy = 'memory' | 'redis' | 'fallback' | 'deny-cache';

/** The answer to one charge against one policy. A denial is a verdict, never an exception. */
export interface Verdict {
  /** Whether this policy lets the call pass. In shadow mode always true. */
  readonly allowed: boolean;
  readonly policy: string;
  /** Whose quota it was, with its kind: `ip:203.0.113.7`, `user:42`, `global`. */
  readonly subject: string;
  /** The policy's limit for this subject, in requests a window. */
  readonly limit: number;
  /** Whole units left now: never negative, never over limit or burst. */
  readonly remaining: number;
  /** Milliseconds until the same call would be allowed; 0 when it was, `Infinity` when its cost can never fit. */
  readonly retryAfterMs: number;
  /** Milliseconds until the whole quota is back. */
  readonly resetAfterMs: number;
  /** Leaky bucket: hold the call this many milliseconds, then let it go; otherwise 0. */
  readonly delayMs: number;
  readonly servedBy: ServedBy;
}

/**
 * The verdict that speaks for all of them: a denied one before allowed ones, among denied ones the longest wait,
 * among allowed ones the least remaining, then the longest reset; the first of equals. Undefined for none.
 */
export function strictestVerdict(verdicts: readonly Verdict[]): Verdict | undefined {
  let strictest = verdicts[0];
  for (const verdict of verdicts) {
    if (strictest !== undefined && isStricter(verdict, strictest)) strictest = verdict;
  }
  return strictest;
}

function isStricter(a: Verdict, b: Verdict): boolean {
  if (a.allowed !== b.allowed) return b.allowed;
  if (!a.allowed) return a.retryAfterMs > b.retryAfterMs;
  return a.remaining < b.remaining || (a.remaining === b.remaining && a.resetAfterMs > b.resetAfterMs);
}
