import { HttpException } from '@nestjs/common';
import type { Verdict } from '../core/verdict.js';
import type { ProblemDetails } from '../http/problem-details.js';

/** Thrown where a call is denied. */
export class RateLimitExceededException extends HttpException {
  /** Every verdict of the call, the denied ones among them. */
  readonly verdicts: readonly Verdict[];
  /** Milliseconds until the same call would be allowed; `Infinity` when its cost can never fit. */
  readonly retryAfterMs: number;

  constructor(verdicts: readonly Verdict[], body: ProblemDetails) {
    super(body, 429);
    this.verdicts = verdicts;
    this.retryAfterMs = longestWait(verdicts);
  }
}

/** Thrown where the store can't be reached and the policy's `onUnavailable` is `deny`. */
export class RateLimitUnavailableException extends HttpException {
  readonly verdicts: readonly Verdict[];
  readonly retryAfterMs: number;

  constructor(verdicts: readonly Verdict[], body: ProblemDetails) {
    super(body, 503);
    this.verdicts = verdicts;
    this.retryAfterMs = longestWait(verdicts);
  }
}

function longestWait(verdicts: readonly Verdict[]): number {
  return Math.max(0, ...verdicts.map(({ retryAfterMs }) => retryAfterMs));
}
