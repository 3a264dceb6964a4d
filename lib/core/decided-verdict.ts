import type { Receipt } from './algorithm.js';
import type { Counter, Decision } from './driver.js';
import type { ServedBy, Verdict } from './verdict.js';

/** What a verdict took, and from where. A verdict gives it out once. */
export interface Taken {
  readonly counter: Counter;
  readonly receipt: Receipt;
}

/**
 * The verdict as this library makes it: the public fields, and out of sight what would give the charge back.
 */
export class DecidedVerdict implements Verdict {
  readonly allowed: boolean;
  readonly policy: string;
  readonly subject: string;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly servedBy: ServedBy;
  readonly #counter: Counter;
  readonly #storeFailed: boolean;
  #receipt: Receipt | undefined;

  /** @param subject as callers know it, not as stores do */
  constructor(counter: Counter, subject: string, decision: Decision, storeFailed = false) {
    const passes = decision.allowed || counter.policy.mode === 'shadow';
    this.allowed = passes;
    this.policy = counter.policy.name;
    this.subject = subject;
    this.limit = counter.quota.limit;
    this.remaining = decision.remaining;
    this.retryAfterMs = passes ? 0 : decision.retryAfterMs;
    this.resetAfterMs = decision.resetAfterMs;
    this.delayMs = counter.policy.mode === 'shadow' ? 0 : decision.delayMs;
    this.servedBy = decision.servedBy;
    this.#counter = counter;
    this.#storeFailed = storeFailed || decision.storeFailed === true;
    this.#receipt = decision.receipt;
  }

  /** What the verdict was about: the policy as it was then, and the quota of that subject. */
  static counterOf(verdict: Verdict): Counter | undefined {
    return verdict instanceof DecidedVerdict ? verdict.#counter : undefined;
  }

  /** Whether the policy's `onUnavailable` answered, because the store could not. */
  static storeFailed(verdict: Verdict): boolean {
    return verdict instanceof DecidedVerdict && verdict.#storeFailed;
  }

  /** The denial as it is told `elapsedMs` later, while nothing else was counted. It took nothing either. */
  static denialAfter(denial: Verdict, elapsedMs: number): Verdict {
    if (!(denial instanceof DecidedVerdict)) return denial;
    const { remaining, retryAfterMs, resetAfterMs, servedBy } = denial;
    const decision: Decision = {
      allowed: false,
      remaining,
      retryAfterMs: Math.max(1, retryAfterMs - elapsedMs),
      resetAfterMs: Math.max(0, resetAfterMs - elapsedMs),
      delayMs: 0,
      servedBy,
      receipt: undefined,
    };
    return new DecidedVerdict(denial.#counter, denial.subject, decision, denial.#storeFailed);
  }

  /** What the verdict took, at most once; `undefined` when it took nothing or was refunded. */
  static release(verdict: DecidedVerdict): Taken | undefined {
    const receipt = verdict.#receipt;
    verdict.#receipt = undefined;
    return receipt === undefined ? undefined : { counter: verdict.#counter, receipt };
  }
}
