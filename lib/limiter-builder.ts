import type { Clock } from './core/clock.js';
import { onceEach, type Diagnostic } from './core/diagnostics.js';
import type { Duration } from './core/duration.js';
import {
  clockRule,
  driverRule,
  completeMemory,
  type EngineOptions,
  type MemoryOptions,
} from './core/engine-options.js';
import { notAvailable, redacted } from './core/errors.js';
import { BoundLimiter, type Limiter } from './core/limiter.js';
import type { RateLimitObserver } from './core/observer.js';
import type { PolicyOptions } from './core/policy.js';
import { nameRule, validate } from './core/validation.js';
import { createEngine } from './create-rate-limiter.js';

const DEFAULT_LIMIT = 200;
const DEFAULT_WINDOW = '1s';

/** Where the Redis driver connects to. This version has none: giving one is an error that says so. */
export type RedisSource = string | object;

/**
 * Builds a limiter of one policy without Nest. Every step is optional; by default 200 calls a second, in memory.
 * Each limiter has a store of its own: `close()` it when it is done with.
 */
export function limiterBuilder(redis?: RedisSource): LimiterBuilder {
  return new LimiterBuilder(redis);
}

export class LimiterBuilder {
  readonly #redis: RedisSource | undefined;
  readonly #policy: PolicyOptions = { limit: DEFAULT_LIMIT, window: DEFAULT_WINDOW };
  readonly #engine: EngineOptions = {};
  readonly #observers: RateLimitObserver[] = [];
  readonly #unavailable: string[] = [];
  readonly #withoutEffect: string[] = [];
  #name = 'default';

  constructor(redis?: RedisSource) {
    this.#redis = redis;
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

  /** Options of the hybrid driver, which this version does not have: `build` says so. */
  hybrid(_options: object): this {
    this.#unavailable.push('hybrid');
    return this;
  }

  /** Where keys stand in Redis; without effect in memory. */
  prefix(_prefix: string): this {
    this.#withoutEffect.push('prefix');
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
    if (this.#redis !== undefined) {
      throw notAvailable(
        'redis',
        'nothing: this version has no Redis driver, leave it out to run in memory',
        redacted(this.#redis),
      );
    }
    for (const path of this.#unavailable) {
      throw notAvailable(path, 'nothing: this version has no Redis and no hybrid driver', 'options');
    }
    const { driver, memory, clock } = this.#engine;
    if (driver !== undefined) validate(driverRule, driver, 'driver');
    if (memory !== undefined) this.#engine.memory = completeMemory(memory);
    if (clock !== undefined) validate(clockRule, clock, 'clock');
    validate(nameRule, this.#name, 'name');
    const report = onceEach(warn);
    for (const path of this.#withoutEffect) {
      report({ code: 'RL_OPTION_HAS_NO_EFFECT', message: `${path} has no effect with the memory driver` });
    }
    const { engine, registry } = createEngine({ ...this.#engine, observers: this.#observers }, report);
    return new BoundLimiter(engine, registry.define(this.#name, this.#policy, 'policy'), true);
  }
}

/** Without a framework's logger, diagnostics are process warnings. */
function warn({ code, message }: Diagnostic): void {
  process.emitWarning(message, { type: 'RateLimitWarning', code });
}
