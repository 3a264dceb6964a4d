import {
  ALLOWED,
  CHARGED_AT,
  OUTCOME_SLOTS,
  REMAINING,
  type LogAlgorithm,
  type Quota,
  type RegisterAlgorithm,
} from '../../core/algorithm.js';
import type { Counter } from '../../core/driver.js';
import { EntryRing } from '../memory/entry-ring.js';

const outcome = new Float64Array(OUTCOME_SLOTS);

/**
 * What is known to be used of one counter. It decides nothing: it counts, by the arithmetic that decides, so that what
 * was used long ago counts no more.
 */
export class Tally {
  #counter: Counter;
  /** As the counter's, but a call that would wait is counted too. */
  #quota: Quota;
  readonly #state:
    | { readonly algorithm: RegisterAlgorithm; readonly registers: Float64Array }
    | { readonly algorithm: LogAlgorithm; readonly log: EntryRing };
  /** Until when, in the store's milliseconds, any of it may count. */
  expiresAt = 0;

  constructor(counter: Counter) {
    this.#counter = counter;
    this.#quota = unbounded(counter.quota);
    const algorithm = counter.policy.arithmetic;
    this.#state =
      algorithm.shape === 'log'
        ? { algorithm, log: new EntryRing() }
        : { algorithm, registers: new Float64Array(algorithm.registers.length) };
  }

  get counter(): Counter {
    return this.#counter;
  }

  /** Whether the counter is counted by the same arithmetic; from now on by its quota, which may have changed. */
  follows(counter: Counter): boolean {
    if (counter.policy.arithmetic !== this.#counter.policy.arithmetic) return false;
    if (counter.quota !== this.#counter.quota) this.#quota = unbounded(counter.quota);
    this.#counter = counter;
    return true;
  }

  remaining(now: number): number {
    this.#step(now, 0);
    return outcome[REMAINING]!;
  }

  /** What of everything that was added still counts. */
  used(now: number): number {
    return this.#state.algorithm.capacity(this.#quota) - this.remaining(now);
  }

  /** Adds a cost, or as much of it as there is left. */
  add(cost: number, now: number): void {
    const added = Math.min(cost, this.remaining(now));
    if (added <= 0) return;
    this.#step(now, added);
    if (outcome[ALLOWED] === 1) {
      this.expiresAt = Math.max(
        this.expiresAt,
        outcome[CHARGED_AT]! + this.#state.algorithm.idleMs(this.#quota),
      );
    }
  }

  /** Adds what is missing, so that no more than `most` is left. Returns it; negative where less was left already. */
  leaveAtMost(most: number, now: number): number {
    const excess = this.remaining(now) - most;
    if (excess > 0) this.add(excess, now);
    return excess;
  }

  giveBack(cost: number, now: number): void {
    const state = this.#state;
    if ('log' in state) state.algorithm.refund(state.log, this.#quota, now, cost, null);
    else state.algorithm.refund(state.registers, 0, this.#quota, now, cost, null);
  }

  #step(now: number, cost: number): void {
    const state = this.#state;
    if ('log' in state) state.algorithm.step(state.log, this.#quota, now, cost, outcome);
    else state.algorithm.step(state.registers, 0, this.#quota, now, cost, outcome);
  }
}

function unbounded(quota: Quota): Quota {
  return quota.maxDelayMs === Infinity ? quota : { ...quota, maxDelayMs: Infinity };
}
