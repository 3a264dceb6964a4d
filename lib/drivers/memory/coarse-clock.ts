import { outsideAnyCall } from '../../core/async-context.js';
import type { Clock } from '../../core/clock.js';

/** After so many uses the clock is read again, so that a spin inside one event-loop turn ends. */
const USES_PER_READ = 50;

/**
 * A clock that is read once an event-loop turn and again after a few dozen uses: reading costs as much as a
 * decision. The time stands in a typed array, since a number returned from a call that is not inlined is boxed.
 * It is never ahead of the clock behind it, and behind by one synchronous stretch at most.
 */
export class CoarseClock {
  readonly time = new Float64Array(1);
  readonly #clock: Clock;
  readonly #caches: boolean;
  #usesLeft = 0;
  #turnWatched = false;

  /** @param caches false for a clock that somebody holds: its time may change between two calls */
  constructor(clock: Clock, caches: boolean) {
    this.#clock = clock;
    this.#caches = caches;
  }

  /** Brings `time[0]` up to date, within the bounds above. */
  touch(): void {
    if (this.#usesLeft-- > 0) return;
    this.time[0] = Math.floor(this.#clock.now());
    if (!this.#caches) return;
    this.#usesLeft = USES_PER_READ;
    if (this.#turnWatched) return;
    this.#turnWatched = true;
    outsideAnyCall(this.#watchTurn);
  }

  readonly #watchTurn = (): void => {
    setImmediate(this.#turnEnded).unref();
  };

  readonly #turnEnded = (): void => {
    this.#turnWatched = false;
    this.#usesLeft = 0;
  };
}
