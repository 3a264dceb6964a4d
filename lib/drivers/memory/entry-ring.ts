import type { EntryLog } from '../../core/algorithm.js';

const INITIAL_ENTRIES = 4;

/** The log of one subject in memory: a ring of (time, cost) pairs that doubles when it is full. */
export class EntryRing implements EntryLog {
  #pairs = new Float64Array(2 * INITIAL_ENTRIES);
  /** The length is a power of two, so wrapping is a mask. */
  #mask = 2 * INITIAL_ENTRIES - 1;
  #head = 0;
  #size = 0;
  #total = 0;

  get size(): number {
    return this.#size;
  }

  get total(): number {
    return this.#total;
  }

  // These two spell out the place: the smaller they are, the surer they are inlined, and their numbers not boxed.

  time(index: number): number {
    return this.#pairs[(this.#head + 2 * index) & this.#mask]!;
  }

  cost(index: number): number {
    return this.#pairs[((this.#head + 2 * index) & this.#mask) + 1]!;
  }

  push(time: number, cost: number): void {
    if (2 * this.#size === this.#pairs.length) this.#grow();
    const at = this.#at(this.#size++);
    this.#pairs[at] = time;
    this.#pairs[at + 1] = cost;
    this.#total += cost;
  }

  dropOldest(count: number): void {
    for (let i = 0; i < count; i++) this.#total -= this.cost(i);
    this.#head = this.#at(count);
    this.#size -= count;
  }

  amend(index: number, time: number, cost: number): void {
    const at = this.#at(index);
    this.#total += cost - this.#pairs[at + 1]!;
    this.#pairs[at] = time;
    this.#pairs[at + 1] = cost;
  }

  #at(index: number): number {
    return (this.#head + 2 * index) & this.#mask;
  }

  #grow(): void {
    const grown = new Float64Array(2 * this.#pairs.length);
    const untilEnd = this.#pairs.subarray(this.#head);
    grown.set(untilEnd);
    grown.set(this.#pairs.subarray(0, this.#head), untilEnd.length);
    this.#pairs = grown;
    this.#mask = grown.length - 1;
    this.#head = 0;
  }
}
