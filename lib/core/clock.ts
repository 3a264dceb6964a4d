import { RateLimitError } from './errors.js';

/**
 * Where time comes from. One that is given to the module or the builder rules what is waited for, and the decisions of
 * the built-in drivers, which is what tests want. A driver of your own has its own. Without one the memory driver uses
 * {@link monotonicClock}, and Redis its server's time.
 */
export interface Clock {
  /** Milliseconds since the epoch. Drivers round down to whole ones. */
  now(): number;
  /**
   * Calls `callback` once `delayMs` from now, in this clock's time; returns how to cancel that. A clock without
   * it is waited for in real time.
   */
  setTimer?(callback: () => void, delayMs: number): () => void;
}

/** Epoch milliseconds that never step back: a corrected wall clock must not freeze or refill quotas. */
export const monotonicClock: Clock = {
  // Not performance.now(): its result is a heap number, made anew by each call. The array here is optimized away.
  now() {
    const elapsed = process.hrtime();
    return Math.floor(HRTIME_ORIGIN_MS + elapsed[0] * 1_000 + elapsed[1] / 1_000_000);
  },
};

/** The epoch time at which the clock of `process.hrtime` stood at zero. */
const HRTIME_ORIGIN_MS =
  performance.timeOrigin + performance.now() - Number(process.hrtime.bigint()) / 1_000_000;

/** The longest delay that a Node timer holds; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** A one-shot timer in the clock's own time, or in real time. May fire early: callers look at the clock. */
export function startTimer(clock: Clock, callback: () => void, delayMs: number): () => void {
  const delay = Math.min(Math.max(Math.ceil(delayMs), 0), MAX_TIMER_MS);
  if (clock.setTimer !== undefined) return clock.setTimer(callback, delay);
  const timer = setTimeout(callback, delay);
  return () => clearTimeout(timer);
}

/**
 * A clock's time in whole milliseconds.
 * @throws RateLimitError with `RL_INVALID_CLOCK`: no comparison with such a time would deny anything
 */
export function wholeTime(clock: Clock): number {
  const now = Math.floor(clock.now());
  if (Number.isFinite(now)) return now;
  throw new RateLimitError('RL_INVALID_CLOCK', `the clock's now() gave ${String(now)}, not milliseconds`);
}
