import { DecidedVerdict } from '../core/decided-verdict.js';
import type { Verdict } from '../core/verdict.js';
import { problemDetails } from '../http/problem-details.js';
import {
  RateLimitExceededException,
  RateLimitUnavailableException,
  type RateLimitException,
} from './rate-limit-exceptions.js';
import { windowMsOf } from './verdicts.js';

/** The exception for a denied call. */
export function denialOf(verdicts: readonly Verdict[]): RateLimitException {
  const windowOf = (index: number) => windowMsOf(verdicts[index]!);
  if (verdicts.some((verdict) => !verdict.allowed && DecidedVerdict.storeFailed(verdict))) {
    return new RateLimitUnavailableException(verdicts, problemDetails(503, verdicts, windowOf));
  }
  return new RateLimitExceededException(verdicts, problemDetails(429, verdicts, windowOf));
}
