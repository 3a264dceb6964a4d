import { detached } from '../../core/detached.js';
import { EntryRing } from './entry-ring.js';
import { KEY_WORDS, textAt, type SubjectKey } from './subject-key.js';

/** A slot without an entry. */
const EMPTY = 0;
/** A slot whose entry has moved on. Only columns that are being emptied have such. */
const MOVED = 1;
const FIRST_TAG = 2;

/** Where in a record the time stands at which the entry's state equals zero: epoch milliseconds. */
const EXPIRY = 0;
/** Where in a record the registers begin. The key comes after them. */
const REGISTERS = 1;
const DOUBLE_WORDS = 2;

/** What a comparison of keys counts for among probes. */
const COMPARISON = 16;

/**
 * One open-addressing hash table with linear probing: no object an entry. Slots are ordered by the high bits of a
 * 32-bit tag, so any number of slots will do, and moving entries over to a larger table reads both from front to
 * back. All numbers of an entry and its key stand side by side: after the tag they cost one cache miss together.
 */
export class Columns {
  readonly capacity: number;
  /** How many numbers a record takes. */
  readonly stride: number;
  /** How many words a record takes, and after how many of them its key begins. */
  readonly #wordStride: number;
  readonly #keyOffset: number;
  /** Signed, as the hashes are. */
  readonly #tags: Int32Array;
  readonly records: Float64Array;
  /** The same memory, for keys. */
  readonly #words: Int32Array;
  /** Keys that are too long for their place in the record. Made for the first such. */
  #texts: (string | undefined)[] | undefined;
  readonly logs: (EntryRing | undefined)[] | undefined;
  /** Slots a unit of a tag. */
  readonly #scale: number;
  count = 0;
  /** How far the last insertion had to look: what flooding makes long. */
  lastProbes = 0;

  constructor(capacity: number, width: number, withLogs: boolean) {
    this.capacity = capacity;
    this.stride = REGISTERS + width + KEY_WORDS / DOUBLE_WORDS;
    this.#wordStride = this.stride * DOUBLE_WORDS;
    this.#keyOffset = (REGISTERS + width) * DOUBLE_WORDS;
    this.#tags = new Int32Array(capacity);
    this.records = new Float64Array(capacity * this.stride);
    this.#words = new Int32Array(this.records.buffer);
    this.logs = withLogs ? new Array<EntryRing | undefined>(capacity) : undefined;
    this.#scale = capacity / 0x1_0000_0000;
  }

  /** A hash as it is kept: without the two values that mark slots. */
  static tagOf(hash: number): number {
    return (hash & ~MOVED) === EMPTY ? hash + FIRST_TAG : hash;
  }

  /** The slot of a key, or -1. */
  find(text: string, key: SubjectKey, tag: number): number {
    const tags = this.#tags;
    const { capacity } = this;
    let slot = this.#home(tag);
    for (;;) {
      const found = tags[slot]!;
      if (found === tag && this.#isAt(slot, text, key)) return slot;
      if (found === EMPTY) return -1;
      if (++slot === capacity) slot = 0;
    }
  }

  /** Makes room for a key that is not here. The entry's numbers are zero. There must be an empty slot. */
  insert(text: string, key: SubjectKey, tag: number): number {
    const slot = this.#claim(tag);
    const words = this.#words;
    const at = this.#keyAt(slot);
    for (let i = 0; i < key.used; i++) words[at + i] = key.words[i]!;
    if (key.long) this.#keep(slot, detached(text));
    return slot;
  }

  /** Takes an entry over from other columns of the same width, and leaves them a mark in its place. */
  takeFrom(other: Columns, from: number, tag: number): number {
    const slot = this.#claim(tag);
    this.#copy(other, from, slot);
    other.#clear(from);
    other.#tags[from] = MOVED;
    other.count--;
    return slot;
  }

  /** Removes an entry and closes the gap (backward-shift deletion), so that no tombstones pile up. */
  remove(slot: number): void {
    const tags = this.#tags;
    const { capacity } = this;
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
      tags[gap] = tags[next]!;
      this.#copy(this, next, gap);
      gap = next;
    }
    this.#clear(gap);
    tags[gap] = EMPTY;
  }

  holds(slot: number): boolean {
    const tag = this.#tags[slot]!;
    return tag !== EMPTY && tag !== MOVED;
  }

  tag(slot: number): number {
    return this.#tags[slot]!;
  }

  text(slot: number): string {
    return textAt(this.#words, this.#keyAt(slot)) ?? this.#texts![slot]!;
  }

  /** Where in {@link records} an entry's registers begin. */
  registersAt(slot: number): number {
    return slot * this.stride + REGISTERS;
  }

  // Places are passed about, not the numbers there: those are boxed wherever a call isn't inlined.

  /** Where in {@link records} an entry's expiry stands. */
  expiryAt(slot: number): number {
    return slot * this.stride + EXPIRY;
  }

  hasExpired(slot: number, now: number): boolean {
    return this.records[slot * this.stride + EXPIRY]! <= now;
  }

  /** Brings an entry's state back to what nobody has used. */
  startAfresh(slot: number): void {
    const at = this.registersAt(slot);
    this.records.fill(0, at, this.#keyAt(slot) / DOUBLE_WORDS);
    if (this.logs !== undefined) this.logs[slot] = new EntryRing();
  }

  #isAt(slot: number, text: string, key: SubjectKey): boolean {
    const words = this.#words;
    const at = this.#keyAt(slot);
    const wanted = key.words;
    const { used } = key;
    for (let i = 0; i < used; i++) if (words[at + i] !== wanted[i]) return false;
    return !key.long || this.#texts![slot] === text;
  }

  /** Takes the next free slot for a tag. */
  #claim(tag: number): number {
    const tags = this.#tags;
    const { capacity } = this;
    let slot = this.#home(tag);
    let probes = 0;
    while (tags[slot] !== EMPTY) {
      // Each equal tag costs a comparison of keys, which is what a flood of collisions lives on.
      probes += tags[slot] === tag ? COMPARISON : 1;
      if (++slot === capacity) slot = 0;
    }
    this.lastProbes = probes;
    tags[slot] = tag;
    this.count++;
    return slot;
  }

  #home(tag: number): number {
    return ((tag >>> 0) * this.#scale) | 0;
  }

  /** Where in the words an entry's key begins. */
  #keyAt(slot: number): number {
    return slot * this.#wordStride + this.#keyOffset;
  }

  #keep(slot: number, text: string): void {
    this.#texts ??= new Array<string | undefined>(this.capacity);
    this.#texts[slot] = text;
  }

  /** Copies an entry, its tag apart. As words: a key's bytes may look like a number that isn't kept bit by bit. */
  #copy(other: Columns, from: number, to: number): void {
    const length = this.#wordStride;
    const source = other.#words;
    const target = this.#words;
    for (let i = 0; i < length; i++) target[to * length + i] = source[from * length + i]!;
    const text = other.#texts?.[from];
    if (text !== undefined) this.#keep(to, text);
    else if (this.#texts !== undefined) this.#texts[to] = undefined;
    if (this.logs !== undefined) this.logs[to] = other.logs![from];
  }

  #clear(slot: number): void {
    const end = (slot + 1) * this.stride;
    for (let i = slot * this.stride; i < end; i++) this.records[i] = 0;
    if (this.#texts !== undefined) this.#texts[slot] = undefined;
    if (this.logs !== undefined) this.logs[slot] = undefined;
  }
}
