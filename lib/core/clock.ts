/**
 * Where time comes from. Given explicitly it rules every decision, which is what tests want; otherwise the
 * memory driver uses {@link monotonicClock}.
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
  now: () => Math.floor(performance.timeOrigin + performance.now()),
};

/** The longest delay that a Node timer holds; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** A one-shot timer in the clock's own time, or in real time. May fire early: callers look at the clock. */
export function startTimer(clock: Clock, callback: () => void, delayMs: number): () => void {
  const delay = Math.min(Math.max(Math.ceil(delayMs), 0), MAX_TIMER_MS);
  if (clock.setTimer !== undefined) return clock.setTimer(callback, delay);
  const timer = setTimeout(callback, delay);
  return () => clearTimeout(timer);
}
