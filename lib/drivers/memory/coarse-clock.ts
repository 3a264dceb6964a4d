import { outsideAnyCall } from '../../core/async-context.js';
import { wholeTime, type Clock } from '../../core/clock.js';

/** After so many uses the clock is read again, so that a spin inside one event-loop turn ends. */
const USES_PER_READ = 50;

/**
 * The time in whole milliseconds since the epoch. The field begins as no number, so that V8 keeps the time there as an
 * object of its own and hands that object on. From a field that only ever held numbers, each call that isn't inlined
 * would get a new object. For the same reason it is an object apart: read through the clock itself, what was just
 * written would be known as a number again.
 */
export interface Reading {
  now: number;
}

/**
 * A clock that is read once an event-loop turn and again after a few dozen uses: reading costs as much as a
 * decision. It is never ahead of the clock behind it, and behind by one synchronous stretch at most.
 */
export class CoarseClock {
  /** For readers to keep and to read from, after {@link touch} or {@link refresh}. */
  readonly reading: Reading = { now: undefined! };
  readonly #clock: Clock;
  readonly #caches: boolean;
  #usesLeft = 0;
  #turnWatched = false;

  /** @param caches false for a clock that somebody holds: its time may change between two calls */
  constructor(clock: Clock, caches: boolean) {
    this.#clock = clock;
    this.#caches = caches;
  }

  /** Brings the reading up to date, within the bounds above. */
  touch(): void {
    if (--this.#usesLeft < 0) this.#renew();
  }

  #renew(): void {
    this.refresh();
    this.#usesLeft = 0;
    if (!this.#caches) return;
    this.#usesLeft = USES_PER_READ;
    if (this.#turnWatched) return;
    this.#turnWatched = true;
    outsideAnyCall(this.#watchTurn);
  }

  /**
   * Brings the reading up to date, exactly.
   * @throws RateLimitError with `RL_INVALID_CLOCK`: no comparison with such a time would deny anything
   */
  refresh(): void {
    const now = wholeTime(this.#clock);
    if (now !== this.reading.now) this.reading.now = now;
  }

  readonly #watchTurn = (): void => {
    setImmediate(this.#turnEnded).unref();
  };

  readonly #turnEnded = (): void => {
    this.#turnWatched = false;
    this.#usesLeft = 0;
  };
}
