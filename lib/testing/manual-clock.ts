import type { Clock } from '../core/clock.js';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to go on. Timers set on it fire while it is moved. */
export class ManualClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  /** @param now milliseconds since the epoch; default 2026-01-01T00:00:00Z */
  constructor(now: number = Date.UTC(2026, 0, 1)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  /** Moves on by `ms`, and fires what falls due on the way, in order, at its own time. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let timer = this.#nextDue(end); timer !== undefined; timer = this.#nextDue(end)) {
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, timer.due);
      timer.callback();
    }
    this.#now = end;
  }

  /** Jumps to a time, also backwards. Timers that are due by then fire there, once each. */
  set(ms: number): void {
    this.#now = ms;
    const due = [...this.#timers].filter((timer) => timer.due <= ms).toSorted((a, b) => a.due - b.due);
    for (const timer of due) {
      if (this.#timers.delete(timer)) timer.callback();
    }
  }

  setTimer(callback: () => void, delayMs: number): () => void {
    const timer = { due: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  #nextDue(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= end && (next === undefined || timer.due < next.due)) next = timer;
    }
    return next;
  }
}
