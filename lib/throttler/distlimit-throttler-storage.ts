import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { ThrottlerStorage } from '@nestjs/throttler';
import * as v from 'valibot';
import { defined } from '../core/defined.js';
import { onceEach } from '../core/diagnostics.js';
import { completeEngine, engineRules, type EngineOptions } from '../core/engine-options.js';
import { RateLimitConfigError } from '../core/errors.js';
import { LimiterEngine, type LimiterEngineParts } from '../core/limiter-engine.js';
import { canDelay } from '../core/patience.js';
import type { OnUnavailable, Policy, PolicyOptions } from '../core/policy.js';
import { RateLimiter } from '../core/rate-limiter.js';
import { validate } from '../core/validation.js';
import { OperatorLog } from '../nest/operator-log.js';
import { RateLimiterService } from '../nest/rate-limiter.service.js';
import { engineParts } from '../engine-parts.js';
import { ThrottledPolicies } from './throttled-policies.js';

/** How hits are counted, whatever each throttler's numbers are. */
export interface ThrottlerPolicyOptions {
  /** Default `sliding-window-counter`. A leaky bucket would have to hold calls, which a throttler can't. */
  algorithm?: Exclude<PolicyOptions['algorithm'], 'leaky-bucket'>;
  /** Default `fallback`; on a driver without a fallback that means `throw`. */
  onUnavailable?: OnUnavailable;
}

/** A storage with an engine of its own. */
export type ThrottlerStorageOptions = ThrottlerPolicyOptions & Omit<EngineOptions, 'observers'>;

type ThrottlerStorageRecord = Awaited<ReturnType<ThrottlerStorage['increment']>>;

const policyRules = {
  // Checked as parts of a policy.
  algorithm: v.optional(v.unknown()),
  onUnavailable: v.optional(v.unknown()),
};

const PATH = 'DistlimitThrottlerStorage';

/** What all throttlers share is checked at once, with any numbers: it must not fail the first request. */
const EXAMPLE = { limit: 1, window: 1_000 };

const DEFAULT_PREFIX = 'distlimit:throttler';

/**
 * This library's engine behind `@nestjs/throttler`: as `storage` of `ThrottlerModule`. The throttlers, their decorators,
 * headers and errors stay as they are; a hit is counted by this engine, in memory, in Redis or in both.
 *
 * Given the `RateLimiterService` of a `RateLimitModule` it counts where that does. Otherwise it has a driver of its own,
 * with the prefix `distlimit:throttler`, which is closed when the application shuts down.
 */
export class DistlimitThrottlerStorage implements ThrottlerStorage, OnModuleInit, OnApplicationShutdown {
  readonly #engine: LimiterEngine;
  /** What the engine is made of, where it is this storage's own. */
  readonly #ownParts: LimiterEngineParts | undefined;
  readonly #policies: ThrottledPolicies;

  constructor(options?: ThrottlerStorageOptions);
  constructor(limiter: RateLimiterService, options?: ThrottlerPolicyOptions);
  /** @throws RateLimitConfigError for the first thing that is wrong */
  constructor(first: RateLimiterService | ThrottlerStorageOptions = {}, second: ThrottlerPolicyOptions = {}) {
    let shared: Partial<PolicyOptions>;
    if (first instanceof RateLimiterService) {
      shared = defined(validate(v.strictObject(policyRules), second, PATH)) as Partial<PolicyOptions>;
      this.#engine = RateLimiter.engineOf(first);
      requireThrottling(this.#engine.draft('throttler', { ...EXAMPLE, ...shared }, PATH).current);
    } else {
      const all = validate(v.strictObject({ ...engineRules, ...policyRules }), first, PATH);
      const { algorithm, onUnavailable, ...engine } = all;
      shared = defined({ algorithm, onUnavailable }) as Partial<PolicyOptions>;
      completeEngine(engine);
      this.#ownParts = ownParts(engine, shared);
      this.#engine = new LimiterEngine(this.#ownParts);
    }
    this.#policies = new ThrottledPolicies(this.#engine, shared);
  }

  /** Waits for Redis as long as a start may. */
  async onModuleInit(): Promise<void> {
    await this.#ownParts?.driver.started;
  }

  /**
   * Counts a hit. One that is over the limit takes nothing, and blocks its key for `blockDuration` from then on.
   * @param key what the throttler made of handler, throttler and tracker
   * @param ttl in milliseconds
   * @param blockDuration in milliseconds
   * @returns times in seconds, rounded up, as throttlers take them
   */
  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerStorageRecord> {
    // How some throttlers say that a request is not limited: there is nothing to count.
    if (limit === Infinity) {
      return { totalHits: 1, timeToExpire: seconds(ttl), isBlocked: false, timeToBlockExpire: 0 };
    }
    const slot = this.#policies.of({ name: throttlerName, limit, ttl, blockDuration });
    const verdict = await this.#engine.charge(slot, key);
    return {
      totalHits: verdict.limit - verdict.remaining + (verdict.allowed ? 0 : 1),
      timeToExpire: seconds(verdict.resetAfterMs),
      isBlocked: !verdict.allowed,
      timeToBlockExpire: seconds(verdict.retryAfterMs),
    };
  }

  /** Closes what this storage opened. A `RateLimitModule` closes its own. */
  async onApplicationShutdown(): Promise<void> {
    if (this.#ownParts !== undefined) await this.#engine.close();
  }
}

function ownParts(options: EngineOptions, shared: Partial<PolicyOptions>): LimiterEngineParts {
  const logger = new Logger('RateLimit');
  const report = onceEach(({ code, message }) => logger.warn(`${code}: ${message}`));
  const { prefix, redis } = options;
  const placed = redis === undefined ? options : { ...options, prefix: prefix ?? DEFAULT_PREFIX };
  // Before a connection is opened.
  const observers = [new OperatorLog(logger)];
  return engineParts({ ...placed, observers }, report, (registry) =>
    requireThrottling(registry.draft('throttler', { ...EXAMPLE, ...shared }, PATH).current),
  );
}

/** @throws RateLimitConfigError for an algorithm that has calls wait: throttlers let them go at once */
function requireThrottling(policy: Policy): void {
  if (!canDelay(policy)) return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: `${PATH}.algorithm`,
    expected: 'an algorithm that does not hold calls: a throttler lets them go at once',
    received: policy.algorithm,
  });
}

/** A call that can never fit is told to come back after the longest time that a header can say. */
function seconds(ms: number): number {
  return Math.ceil(Math.min(ms, 2 ** 31 * 1_000) / 1_000);
}
