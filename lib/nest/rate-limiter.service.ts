import { RateLimiter } from '../core/rate-limiter.js';

/**
 * The limiter of the application, to inject. A denial is a returned `Verdict`, never an exception; a failure is an
 * exception.
 */
export class RateLimiterService extends RateLimiter {}
