import type { Clock } from './core/clock.js';
import { onceEach, type Diagnostic } from './core/diagnostics.js';
import type { Duration } from './core/duration.js';
import {
  clockRule,
  driverRule,
  prefixRule,
  completeHybrid,
  completeMemory,
  type EngineOptions,
  type HybridOptions,
  type MemoryOptions,
} from './core/engine-options.js';
import { LimiterEngine } from './core/limiter-engine.js';
import { BoundLimiter, type Limiter } from './core/limiter.js';
import type { RateLimitObserver } from './core/observer.js';
import type { PolicyOptions } from './core/policy.js';
import type { RedisSource } from './core/redis-address.js';
import { nameRule, validate } from './core/validation.js';
import { engineParts } from './engine-parts.js';

const DEFAULT_LIMIT = 200;
const DEFAULT_WINDOW = '1s';

/**
 * Builds a limiter of one policy without Nest. Every step is optional; by default 200 calls a second, in memory.
 * With a Redis it counts there, in this process while Redis is away, and connects when it is built.
 * Each limiter has a store of its own: `close()` it when it is done with.
 */
export function limiterBuilder(redis?: RedisSource): LimiterBuilder {
  return new LimiterBuilder(redis);
}

export class LimiterBuilder {
  readonly #policy: PolicyOptions = { limit: DEFAULT_LIMIT, window: DEFAULT_WINDOW };
  readonly #engine: EngineOptions = {};
  readonly #observers: RateLimitObserver[] = [];
  #name = 'default';

  constructor(redis?: RedisSource) {
    if (redis !== undefined) this.#engine.redis = redis;
  }

  name(name: string): this {
    this.#name = name;
    return this;
  }

  /** Whole requests a window, ≥ 0. Default 200. */
  limit(limit: number): this {
    this.#policy.limit = limit;
    return this;
  }

  /** Default one second. */
  window(window: Duration): this {
    this.#policy.window = window;
    return this;
  }

  /** Default `sliding-window-counter`. */
  algorithm(algorithm: NonNullable<PolicyOptions['algorithm']>): this {
    this.#policy.algorithm = algorithm;
    return this;
  }

  burst(burst: number): this {
    this.#policy.burst = burst;
    return this;
  }

  maxDelay(maxDelay: Duration): this {
    this.#policy.maxDelay = maxDelay;
    return this;
  }

  block(duration: Duration): this {
    this.#policy.block = duration;
    return this;
  }

  driver(driver: NonNullable<EngineOptions['driver']>): this {
    this.#engine.driver = driver;
    return this;
  }

  memory(options: MemoryOptions): this {
    this.#engine.memory = options;
    return this;
  }

  /** How outages of Redis are gone through. */
  hybrid(options: HybridOptions): this {
    this.#engine.hybrid = options;
    return this;
  }

  /** What every key in Redis begins with, without braces; without effect in memory. */
  prefix(prefix: string): this {
    this.#engine.prefix = prefix;
    return this;
  }

  clock(clock: Clock): this {
    this.#engine.clock = clock;
    return this;
  }

  observer(observer: RateLimitObserver): this {
    this.#observers.push(observer);
    return this;
  }

  /** @throws RateLimitConfigError for the first thing that is wrong */
  build(): Limiter {
    const { driver, memory, hybrid, clock, prefix } = this.#engine;
    if (driver !== undefined) validate(driverRule, driver, 'driver');
    if (memory !== undefined) this.#engine.memory = completeMemory(memory);
    if (hybrid !== undefined) this.#engine.hybrid = completeHybrid(hybrid);
    if (prefix !== undefined) validate(prefixRule, prefix, 'prefix');
    if (clock !== undefined) validate(clockRule, clock, 'clock');
    validate(nameRule, this.#name, 'name');
    const report = onceEach(warn);
    const parts = engineParts({ ...this.#engine, observers: this.#observers }, report, (registry) =>
      registry.define(this.#name, this.#policy, 'policy'),
    );
    return new BoundLimiter(new LimiterEngine(parts), parts.registry.slot(this.#name), true);
  }
}

/** Without a framework's logger, diagnostics are process warnings. */
function warn({ code, message }: Diagnostic): void {
  process.emitWarning(message, { type: 'RateLimitWarning', code });
}
