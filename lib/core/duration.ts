import { RateLimitConfigError } from './errors.js';

/** Whole milliseconds, or a number with a unit: `'250ms'`, `'10s'`, `'1m'`, `'2h'`, `'1d'`. */
export type Duration = number | string;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The whole milliseconds that a duration stands for, or `undefined` where it stands for none. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  if (typeof value !== 'string') return undefined;
  const match = /^\s*(\d{1,16}(?:\.\d{1,6})?)(?:\s*(ms|s|m|h|d))?\s*$/.exec(value);
  if (match === null) return undefined;
  const ms = Number((Number(match[1]) * UNITS[match[2] ?? 'ms']!).toFixed(6));
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** @throws RateLimitConfigError where it stands for none */
export function requireDuration(path: string, value: unknown): number {
  const ms = parseDuration(value);
  if (ms !== undefined) return ms;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_DURATION',
    path,
    expected: "milliseconds or a duration such as '10s'",
    received: value,
  });
}
