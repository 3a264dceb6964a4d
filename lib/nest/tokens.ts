/** The options of `forRoot`, completed. */
export const RATE_LIMIT_OPTIONS = Symbol('nestjs-distlimit options');

/** What the engine was made of, its registry of policies and its observers among it. */
export const ENGINE_PARTS = Symbol('nestjs-distlimit engine parts');

/** Where diagnostics go. */
export const REPORT = Symbol('nestjs-distlimit report');

/** How calls of each kind are told, held and ended. */
export const TRANSPORTS = Symbol('nestjs-distlimit transports');

/** Where a limited method's object keeps the handle to its application's limits. */
export const METHOD_LIMITS = Symbol('nestjs-distlimit method limits');

/** The provider of a {@link InjectLimiter} parameter. */
export function limiterToken(policy: string): string {
  return `nestjs-distlimit limiter ${policy}`;
}
