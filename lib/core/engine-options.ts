import * as v from 'valibot';
import type { Clock } from './clock.js';
import { defined } from './defined.js';
import type { Driver } from './driver.js';
import type { RateLimitObserver } from './observer.js';
import type { RedisSource } from './redis-address.js';
import { redacted } from './errors.js';
import {
  boolean,
  MOST_TIMER_MS,
  nameRule,
  objectLike,
  oneOf,
  rule,
  validate,
  wholeNumber,
} from './validation.js';

/** Bounds of the memory driver. */
export interface MemoryOptions {
  /** The most counters and blocks held at once, ≥ 1; default 1,000,000. */
  maxKeys?: number;
  /** How often what has expired is removed, in milliseconds, 1 to 2^31 − 1; default 1,000. */
  sweepIntervalMs?: number;
}

/** How the hybrid driver goes through an outage of Redis. Times are whole milliseconds. */
export interface HybridOptions {
  /** The longest that a call waits for Redis, ≥ 1; default 100. */
  timeoutMs?: number;
  /** How long Redis is left alone after a failure, ≥ 1; default 5,000. Up to 20 % longer: instances differ. */
  coolOffMs?: number;
  /** After how many failures in a row that begins, ≥ 1; default 1. */
  failureThreshold?: number;
  /**
   * What an instance lets through without Redis: its part of each limit (`fair-share`, the default), or each limit in
   * full (`full`), whatever the other instances do.
   */
  fallback?: 'fair-share' | 'full';
  /** The smallest part of a limit that an instance gets, ≥ 0; default 1. */
  minShare?: number;
  /** How often an instance tells the others that it is there, ≥ 10; default 2,000. */
  heartbeatMs?: number;
  /** Instances of one group share the limits. Default: the prefix. */
  group?: string;
  /** How many instances to reckon with as long as Redis has never been reached, ≥ 1. */
  expectedInstances?: number;
}

/** What the engine is made of, with or without Nest. */
export interface EngineOptions {
  /** Where Redis is, for the drivers that need it. */
  redis?: RedisSource;
  /** What every key in Redis begins with, without braces; default `distlimit`. */
  prefix?: string;
  driver?: 'memory' | 'redis' | 'hybrid' | Driver;
  memory?: MemoryOptions;
  hybrid?: HybridOptions;
  observers?: readonly RateLimitObserver[];
  /** HMAC secret: stores never see raw identifiers. */
  hashKeys?: string;
  /** `false`: every decision is "allowed", and nothing is counted. */
  enabled?: boolean;
  clock?: Clock;
}

const memorySchema = v.strictObject({
  maxKeys: v.optional(wholeNumber('RL_INVALID_OPTION', 1)),
  sweepIntervalMs: v.optional(wholeNumber('RL_INVALID_OPTION', 1, MOST_TIMER_MS)),
});

const hybridSchema = v.strictObject({
  timeoutMs: v.optional(wholeNumber('RL_INVALID_OPTION', 1), 100),
  coolOffMs: v.optional(wholeNumber('RL_INVALID_OPTION', 1), 5_000),
  failureThreshold: v.optional(wholeNumber('RL_INVALID_OPTION', 1), 1),
  fallback: v.optional(oneOf(['fair-share', 'full']), 'fair-share'),
  minShare: v.optional(wholeNumber('RL_INVALID_OPTION', 0), 1),
  heartbeatMs: v.optional(wholeNumber('RL_INVALID_OPTION', 10), 2_000),
  group: v.optional(nameRule),
  expectedInstances: v.optional(wholeNumber('RL_INVALID_OPTION', 1)),
});

/** All of them but what has no default. */
export type CompletedHybridOptions = Required<Omit<HybridOptions, 'group' | 'expectedInstances'>> &
  Pick<HybridOptions, 'group' | 'expectedInstances'>;

export const clockRule = rule(
  'RL_INVALID_OPTION',
  'a Clock: an object with now(), which returns milliseconds, and perhaps with setTimer()',
  (value) => (isClock(value) ? value : undefined),
);

/** Asks for the time once: a clock that has none would let everything pass, or nothing. */
function isClock(value: unknown): value is Clock {
  const { now, setTimer } = (value ?? {}) as Partial<Clock>;
  return (
    typeof now === 'function' &&
    Number.isFinite((value as Clock).now()) &&
    (setTimer === undefined || typeof setTimer === 'function')
  );
}

const DRIVER_METHODS = [
  'decide',
  'peek',
  'refund',
  'giveBack',
  'reset',
  'block',
  'unblock',
  'status',
  'close',
] as const satisfies (keyof Driver)[];

const DRIVER_EXPECTED =
  "'memory', 'redis', 'hybrid', or a Driver: an object with a name, and the functions " +
  DRIVER_METHODS.join(', ');

export const driverRule = rule('RL_INVALID_OPTION', DRIVER_EXPECTED, (value) =>
  ['memory', 'redis', 'hybrid'].includes(value as string) || isDriver(value)
    ? (value as EngineOptions['driver'])
    : undefined,
);

/** Braces would decide the cluster slot of every key. */
export const prefixRule = rule(
  'RL_INVALID_NAME',
  'text of 1 to 200 characters without control characters and braces',
  (value) =>
    typeof value === 'string' && /^[^{}\u0000-\u001f\u007f-\u009f]{1,200}$/.test(value) ? value : undefined,
);

function isDriver(value: unknown): value is Driver {
  if (typeof value !== 'object' || value === null) return false;
  const { name, synchronous } = value as Partial<Driver>;
  return (
    typeof name === 'string' &&
    hasMethods(value, DRIVER_METHODS) &&
    (synchronous === undefined || hasMethods(synchronous, ['decideOne', 'tryTake']))
  );
}

function hasMethods(value: object, names: readonly string[]): boolean {
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
}

/** The rules of the engine's options, beside which others may stand. {@link completeEngine} does the rest. */
export const engineRules = {
  redis: v.optional(
    rule('RL_INVALID_OPTION', 'the address of a Redis', (value) => value as RedisSource | undefined),
  ),
  driver: v.optional(driverRule),
  memory: v.optional(objectLike<MemoryOptions>('an object')),
  hybrid: v.optional(objectLike<HybridOptions>('an object')),
  prefix: v.optional(prefixRule),
  hashKeys: v.optional(
    rule(
      'RL_INVALID_OPTION',
      'a secret of at least 16 characters',
      (value) => (typeof value === 'string' && value.length >= 16 ? value : undefined),
      redacted,
    ),
  ),
  enabled: v.optional(boolean(), true),
  clock: v.optional(clockRule),
};

/**
 * Completes what {@link engineRules} let pass.
 * @throws RateLimitConfigError for the first thing that is wrong
 */
export function completeEngine(options: { memory?: MemoryOptions; hybrid?: HybridOptions }): void {
  if (options.memory !== undefined) options.memory = completeMemory(options.memory);
  if (options.hybrid !== undefined) options.hybrid = completeHybrid(options.hybrid);
}

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completeMemory(options: MemoryOptions): MemoryOptions {
  const { maxKeys, sweepIntervalMs } = validate(memorySchema, options, 'memory');
  return defined({ maxKeys, sweepIntervalMs });
}

export const HYBRID_OPTIONS = Object.keys(hybridSchema.entries) as readonly (keyof HybridOptions)[];

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completeHybrid(options: HybridOptions): CompletedHybridOptions {
  const { group, expectedInstances, ...rest } = validate(hybridSchema, options, 'hybrid');
  return { ...rest, ...defined({ group, expectedInstances }) };
}
