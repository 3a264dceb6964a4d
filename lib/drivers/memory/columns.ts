import type { EntryRing } from './entry-ring.js';

/** A slot without an entry. */
const EMPTY = 0;
/** A slot whose entry has moved on. Only columns that are being emptied have such. */
const MOVED = 1;
const FIRST_TAG = 2;

/**
 * One open-addressing hash table with linear probing, laid out in columns: no object an entry. Slots are ordered by
 * the high bits of a 32-bit tag, so any number of slots will do, and moving entries over to a larger table reads
 * both from front to back.
 */
export class Columns {
  readonly capacity: number;
  readonly width: number;
  readonly tags: Uint32Array;
  readonly keys: (string | undefined)[];
  readonly registers: Float64Array;
  /** When the entry's state equals zero: epoch milliseconds. */
  readonly expiries: Float64Array;
  readonly logs: (EntryRing | undefined)[] | undefined;
  count = 0;
  /** How far the last probe had to look: what flooding makes long. */
  lastProbes = 0;

  constructor(capacity: number, width: number, withLogs: boolean) {
    this.capacity = capacity;
    this.width = width;
    this.tags = new Uint32Array(capacity);
    this.keys = new Array<string | undefined>(capacity);
    this.registers = new Float64Array(capacity * width);
    this.expiries = new Float64Array(capacity);
    this.logs = withLogs ? new Array<EntryRing | undefined>(capacity) : undefined;
  }

  /** A hash as it is kept: without the two values that mark slots. */
  static tagOf(hash: number): number {
    return hash < FIRST_TAG ? hash + FIRST_TAG : hash;
  }

  /** The slot of a key, or -1. */
  find(key: string, tag: number): number {
    const { tags, keys, capacity } = this;
    let slot = this.#home(tag);
    for (;;) {
      const found = tags[slot]!;
      if (found === tag && keys[slot] === key) return slot;
      if (found === EMPTY) return -1;
      if (++slot === capacity) slot = 0;
    }
  }

  /** Makes room for a key that is not here. The entry's numbers are zero. There must be an empty slot. */
  insert(key: string, tag: number): number {
    const { tags, capacity } = this;
    let slot = this.#home(tag);
    let probes = 0;
    while (tags[slot] !== EMPTY) {
      // Each equal tag costs a comparison of texts, which is what a flood of collisions lives on.
      probes += tags[slot] === tag ? 16 : 1;
      if (++slot === capacity) slot = 0;
    }
    this.lastProbes = probes;
    tags[slot] = tag;
    this.keys[slot] = key;
    this.count++;
    return slot;
  }

  /** Removes an entry and closes the gap (backward-shift deletion), so that no tombstones pile up. */
  remove(slot: number): void {
    const { tags, capacity } = this;
    this.count--;
    let gap = slot;
    let next = gap;
    for (;;) {
      if (++next === capacity) next = 0;
      if (tags[next] === EMPTY) break;
      const home = this.#home(tags[next]!);
      // An entry may move back to the gap only if that is not before its home.
      const reachable = next >= home ? gap >= home && gap < next : gap >= home || gap < next;
      if (!reachable) continue;
      this.#copyWithin(next, gap);
      gap = next;
    }
    this.#clear(gap);
    tags[gap] = EMPTY;
  }

  /** Marks an entry as gone without closing the gap: later entries of a table being emptied stay in reach. */
  markMoved(slot: number): void {
    this.#clear(slot);
    this.tags[slot] = MOVED;
    this.count--;
  }

  holds(slot: number): boolean {
    return this.tags[slot]! >= FIRST_TAG;
  }

  /** Copies an entry's numbers from other columns of the same width. */
  copyFrom(other: Columns, from: number, to: number): void {
    const { width } = this;
    for (let i = 0; i < width; i++) this.registers[to * width + i] = other.registers[from * width + i]!;
    this.expiries[to] = other.expiries[from]!;
    if (this.logs !== undefined) this.logs[to] = other.logs![from];
  }

  #home(tag: number): number {
    return Math.floor((tag * this.capacity) / 0x1_0000_0000);
  }

  #copyWithin(from: number, to: number): void {
    this.tags[to] = this.tags[from]!;
    this.keys[to] = this.keys[from];
    this.copyFrom(this, from, to);
  }

  #clear(slot: number): void {
    this.keys[slot] = undefined;
    this.registers.fill(0, slot * this.width, (slot + 1) * this.width);
    this.expiries[slot] = 0;
    if (this.logs !== undefined) this.logs[slot] = undefined;
  }
}
