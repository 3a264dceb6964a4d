import type { Algorithm, Quota } from './algorithm.js';
import { RateLimitConfigError } from './errors.js';
import { isName, rule } from './validation.js';

const EXPECTED =
  "the name of a built-in algorithm, or an Algorithm: name, shape 'registers' with unique `registers` or 'log', " +
  'uses, and the functions defaultBurst, capacity, idleMs, step and refund';

/** A name, or an algorithm of one's own with all its members. What its functions answer is checked later. */
export const algorithmRule = rule('RL_INVALID_ALGORITHM', EXPECTED, (value) =>
  typeof value === 'string' || isAlgorithm(value) ? value : undefined,
);

function isAlgorithm(value: unknown): value is Algorithm {
  if (typeof value !== 'object' || value === null) return false;
  const given = value as Record<string, unknown>;
  return (
    isName(given['name']) &&
    (given['shape'] === 'log' || (given['shape'] === 'registers' && areRegisters(given['registers']))) &&
    Array.isArray(given['uses']) &&
    given['uses'].every((option) => option === 'burst' || option === 'maxDelay') &&
    ['defaultBurst', 'capacity', 'idleMs', 'step', 'refund'].every(
      (name) => typeof given[name] === 'function',
    )
  );
}

function areRegisters(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.every(isName) && new Set(value).size === value.length
  );
}

/** @throws RateLimitConfigError where the algorithm's default is no burst */
export function defaultBurstOf(algorithm: Algorithm, limit: number, windowMs: number, path: string): number {
  const burst = algorithm.defaultBurst(limit, windowMs);
  const least = limit === 0 ? 0 : 1;
  requireWhole(burst, least, `${path}.algorithm.defaultBurst(${limit}, ${windowMs})`);
  return burst;
}

/** @throws RateLimitConfigError where the algorithm can't count by the quota */
export function requireCountable(algorithm: Algorithm, quota: Quota, path: string): void {
  requireWhole(algorithm.capacity(quota), 0, `${path}.algorithm.capacity(quota)`);
  requireWhole(algorithm.idleMs(quota), 1, `${path}.algorithm.idleMs(quota)`);
}

function requireWhole(value: number, least: number, path: string): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_ALGORITHM',
    path,
    expected: `to return a whole number ≥ ${least}`,
    received: value,
  });
}
