/** The options of `forRoot`, completed. */
export const RATE_LIMIT_OPTIONS = Symbol('nestjs-distlimit options');

/** Where a limited method's object keeps the handle to its application's limits. */
export const METHOD_LIMITS = Symbol('nestjs-distlimit method limits');

/** The provider of a {@link InjectLimiter} parameter. */
export function limiterToken(policy: string): string {
  return `nestjs-distlimit limiter ${policy}`;
}
