import * as v from 'valibot';
import type { Clock } from './clock.js';
import type { Driver } from './driver.js';
import type { RateLimitObserver } from './observer.js';
import type { RedisSource } from './redis-source.js';
import { rule, validate, wholeNumber } from './validation.js';

/** Bounds of the memory driver. */
export interface MemoryOptions {
  /** The most counters and blocks held at once, ≥ 1; default 1,000,000. */
  maxKeys?: number;
  /** How often what has expired is removed, in milliseconds, ≥ 1; default 1,000. */
  sweepIntervalMs?: number;
}

/** What the engine is made of, with or without Nest. */
export interface EngineOptions {
  /** Where Redis is, for the drivers that need it. */
  redis?: RedisSource;
  /** What every key in Redis begins with, without braces; default `distlimit`. */
  prefix?: string;
  driver?: 'memory' | 'redis' | 'hybrid' | Driver;
  memory?: MemoryOptions;
  observers?: readonly RateLimitObserver[];
  /** HMAC secret: stores never see raw identifiers. */
  hashKeys?: string;
  /** `false`: every decision is "allowed", and nothing is counted. */
  enabled?: boolean;
  clock?: Clock;
}

const memorySchema = v.strictObject({
  maxKeys: v.optional(wholeNumber('RL_INVALID_OPTION', 1)),
  sweepIntervalMs: v.optional(wholeNumber('RL_INVALID_OPTION', 1)),
});

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
  "'memory', 'redis', or a Driver: an object with a name, and the functions " + DRIVER_METHODS.join(', ');

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

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completeMemory(options: MemoryOptions): MemoryOptions {
  const { maxKeys, sweepIntervalMs } = validate(memorySchema, options, 'memory');
  return {
    ...(maxKeys !== undefined && { maxKeys }),
    ...(sweepIntervalMs !== undefined && { sweepIntervalMs }),
  };
}
