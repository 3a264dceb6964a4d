export type { Diagnostic, DiagnosticSink } from './core/diagnostics.js';
export type {
  Algorithm,
  EntryLog,
  LogAlgorithm,
  Quota,
  Receipt,
  RegisterAlgorithm,
} from './core/algorithm.js';
export {
  ALLOWED,
  CHARGED_AT,
  DELAY,
  MARK,
  MAX_CLOCK_LEAD_MS,
  NEVER,
  OUTCOME_SLOTS,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
} from './core/algorithm.js';
export type { CallContext } from './core/call-context.js';
export { monotonicClock, type Clock } from './core/clock.js';
export type {
  Charge,
  Counter,
  Decision,
  Driver,
  DriverStatus,
  MaybePromise,
  SynchronousDriver,
} from './core/driver.js';
export type { Duration } from './core/duration.js';
export type { EngineOptions, HybridOptions, MemoryOptions } from './core/engine-options.js';
export {
  ERROR_CODES,
  RateLimitConfigError,
  RateLimitError,
  type ConfigProblem,
  type ErrorCode,
} from './core/errors.js';
export type { Limiter } from './core/limiter.js';
export type {
  DecisionEvent,
  BreakerChangeEvent,
  DriverErrorEvent,
  EvictionEvent,
  ObservedLimiter,
  PolicyChangeEvent,
  RateLimitObserver,
  ReconcileEvent,
} from './core/observer.js';
export type {
  AlgorithmName,
  CallOutcome,
  KeyPart,
  OnUnavailable,
  Policy,
  PolicyOptions,
  PolicyPatch,
} from './core/policy.js';
export { cachedResolver, type CachedResolverOptions } from './core/cached-resolver.js';
export type { PolicyResolver, QuotaOverride, ResolverRequest } from './core/policy-resolver.js';
export type { OpenPolicySource, PolicySet, PolicySource, PolicySourceContext } from './core/policy-source.js';
export type { AcquireOptions, ConsumeOptions, RateLimiterStatus } from './core/limiter-options.js';
export type {
  RedisClientLike,
  RedisClusterSource,
  RedisSentinelSource,
  RedisServerSource,
  RedisSource,
} from './core/redis-address.js';
export { subjectOf } from './core/subject.js';
export { strictestVerdict, type ServedBy, type Verdict } from './core/verdict.js';
export {
  fixedWindow,
  gcra,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from './algorithms/index.js';
export { HybridDriver, type HybridDriverOptions } from './drivers/hybrid/hybrid-driver.js';
export { MemoryDriver, type MemoryDriverOptions } from './drivers/memory/memory-driver.js';
export { RedisDriver, type RedisDriverOptions } from './drivers/redis/redis-driver.js';
export type { ProblemDetails, ProblemStatus } from './http/problem-details.js';
export type { HeaderFormat } from './http/rate-limit-headers.js';
export type { ForwardedHeader } from './http/forwarded-hops.js';
export type { ProxyList, TrustedProxies } from './http/trusted-proxies.js';
export { limiterBuilder, type LimiterBuilder } from './limiter-builder.js';
export { CommonLimit } from './nest/decorators/common-limit.decorator.js';
export { InjectLimiter } from './nest/decorators/inject-limiter.decorator.js';
export { RateLimit } from './nest/decorators/rate-limit.decorator.js';
export { RateLimitVerdict } from './nest/decorators/rate-limit-verdict.decorator.js';
export { SkipRateLimit } from './nest/decorators/skip-rate-limit.decorator.js';
export type { RateLimitModuleOptions } from './nest/module-options.js';
export {
  RateLimitException,
  RateLimitExceededException,
  RateLimitUnavailableException,
} from './nest/rate-limit-exceptions.js';
export { RateLimitGuard } from './nest/rate-limit.guard.js';
export { RateLimitInterceptor } from './nest/rate-limit.interceptor.js';
export type { CommonLimitOptions, PolicyReference, RateLimitUse } from './nest/rate-limit-metadata.js';
export {
  RateLimitModule,
  type RateLimitModuleAsyncOptions,
  type RateLimitOptionsFactory,
} from './nest/rate-limit.module.js';
export { RateLimiterService } from './nest/rate-limiter.service.js';
export { fileSource, type FilePolicySourceOptions } from './sources/file-policy-source.js';
export { redisSource, type RedisPolicySourceOptions } from './sources/redis-policy-source.js';
