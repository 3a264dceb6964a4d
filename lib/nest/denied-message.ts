import type { ProblemDetails } from '../http/problem-details.js';
import type { RateLimitException } from './rate-limit-exceptions.js';

/** What callers get who are not answered in HTTP. */
export interface DeniedMessage {
  readonly code: 'TOO_MANY_REQUESTS' | 'SERVICE_UNAVAILABLE';
  readonly message: string;
  /** `Infinity`, in JSON `null`, where trying again never helps. */
  readonly retryAfterMs: number;
  readonly violatedPolicies: readonly string[];
}

export function deniedMessage(exception: RateLimitException): DeniedMessage {
  const problem = exception.getResponse() as ProblemDetails;
  return {
    code: problem.status === 503 ? 'SERVICE_UNAVAILABLE' : 'TOO_MANY_REQUESTS',
    message: problem.detail,
    retryAfterMs: exception.retryAfterMs,
    violatedPolicies: problem['violated-policies'],
  };
}
