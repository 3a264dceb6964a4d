import type { Counter } from '../../core/driver.js';
import { CounterMap } from './counter-map.js';
import { Tally } from './tally.js';

/** Such a part of a limit does not come back between two verdicts; refunds give back less. */
const SUSPICIOUS_PART = 0.1;

/** What is remembered of one counter. */
export interface Remembered {
  readonly tally: Tally;
  /** The data set of Redis that is known to hold this much. */
  heldBy: number;
}

/**
 * What the whole fleet has used, as far as Redis has told this instance: each verdict says it of its counter. It is what
 * an outage starts from, and what a Redis that lost its data is reminded of. It only ever learns of more use: a Redis
 * that says less than before may have lost what it knew.
 */
export class FleetUsage {
  readonly #counters: CounterMap<Remembered>;

  /** @param maxEntries of how many counters something is remembered */
  constructor(maxEntries: number) {
    this.#counters = new CounterMap(maxEntries);
  }

  get size(): number {
    return this.#counters.size;
  }

  /**
   * @param remaining of the counter, at `decidedAt` in Redis' milliseconds
   * @param dataSet of the Redis that decided
   * @returns true where far more is left than was remembered: Redis may have lost its data
   */
  learn(counter: Counter, remaining: number, decidedAt: number, dataSet: number): boolean {
    const known = this.find(counter);
    if (known === undefined) {
      const tally = new Tally(counter);
      tally.leaveAtMost(remaining, decidedAt);
      this.#counters.set(counter, { tally, heldBy: dataSet });
      return false;
    }
    return (
      known.tally.leaveAtMost(remaining, decidedAt) < -Math.max(1, SUSPICIOUS_PART * counter.quota.limit)
    );
  }

  find(counter: Counter): Remembered | undefined {
    const known = this.#counters.get(counter);
    if (known === undefined || known.tally.follows(counter)) return known;
    this.#counters.delete(counter);
    return undefined;
  }

  giveBack(counter: Counter, cost: number, now: number): void {
    this.find(counter)?.tally.giveBack(cost, now);
  }

  forget(counter: Counter): void {
    this.#counters.delete(counter);
  }

  /** Counters of which another data set may know less than is remembered here, and that still count at `now`. */
  *unknownTo(dataSet: number, now: number): Generator<Remembered> {
    for (const known of this.#counters.values()) {
      if (known.heldBy !== dataSet && known.tally.expiresAt > now) yield known;
    }
  }

  /** Removes some of what has expired. Called again it goes on from there. */
  sweep(now: number): void {
    this.#counters.sweep(({ tally }) => tally.expiresAt <= now);
  }

  clear(): void {
    this.#counters.clear();
  }
}
