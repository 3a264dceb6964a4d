import { HttpException } from '@nestjs/common';
import type { Verdict } from '../core/verdict.js';
import type { ProblemDetails } from '../http/problem-details.js';

/** What the filter answers with problem details. */
export abstract class RateLimitException extends HttpException {
  /** Every verdict of the call, the denied ones among them. */
  readonly verdicts: readonly Verdict[];
  /** Milliseconds until the same call would be allowed; `Infinity` when its cost can never fit. */
  readonly retryAfterMs: number;

  constructor(verdicts: readonly Verdict[], body: ProblemDetails) {
    super(body, body.status);
    this.verdicts = verdicts;
    this.retryAfterMs = Math.max(0, ...verdicts.map(({ retryAfterMs }) => retryAfterMs));
  }
}

/** Thrown where a call is denied: 429. */
export class RateLimitExceededException extends RateLimitException {}

/** Thrown where the store can't be reached and the policy's `onUnavailable` is `deny`: 503. */
export class RateLimitUnavailableException extends RateLimitException {}
