import { randomInt } from 'node:crypto';
import { Columns } from './columns.js';
import { halfSipHash, type HashSecret } from './half-sip-hash.js';
import type { SubjectKey } from './subject-key.js';

const INITIAL_CAPACITY = 8;
const MAX_LOAD = 0.85;
/** Of small tables, which can afford to be quicker. */
const MAX_SMALL_LOAD = 0.6;
/** Small tables double; large ones grow by a quarter, so that little of them stands empty. */
const DOUBLE_UP_TO = 1_024;
const GROWTH = 1.25;
/** Below this load a large table is moved to a smaller one: memory goes back after a flood. */
const MIN_LOAD = 0.15;
/** How many slots of the old table each insertion moves on: the new one can't fill up before the old is empty. */
const MOVE_PER_INSERT = 64;
/** A probe this long does not happen by chance at this load: somebody builds keys that collide. */
const MAX_PROBES = 1_024;

/**
 * A table that grows, shrinks and changes its hash function a slice at a time: while it does, entries not moved yet
 * are found in the old columns.
 */
export class Shard {
  readonly #width: number;
  readonly #withLogs: boolean;
  readonly #phase: number;
  columns: Columns;
  #old: Columns | undefined;
  #cursor = 0;
  /** Set once keys were built to collide: from then on the place in the table is a keyed hash. */
  #secret: HashSecret | undefined;
  #oldSecret: HashSecret | undefined;
  /** A sweep is between its first slice and its last. */
  #sweeping = false;
  /** Entries were removed from elsewhere meanwhile. */
  #disturbed = false;
  /** No entry expires before this time. */
  nextExpiry = Infinity;
  /** Counts what may have given an entry of {@link columns} another slot. Of 31 bits, so that it is never boxed. */
  moves = 0;
  /** Keyed hashing is on: keys were built to collide. */
  get hardened(): boolean {
    return this.#secret !== undefined;
  }

  /**
   * @param phase 0 ≤ phase < 1: shifts the sizes of large tables against those of other shards. Shards fill alike, and
   *   would otherwise all grow at the same moment, each holding two tables.
   */
  constructor(width: number, withLogs: boolean, phase = 0) {
    this.#width = width;
    this.#withLogs = withLogs;
    this.#phase = phase;
    this.columns = new Columns(INITIAL_CAPACITY, width, withLogs);
  }

  get count(): number {
    return this.columns.count + (this.#old?.count ?? 0);
  }

  /** The slot of a key in {@link columns}, or -1. The slot is good until the next insertion or removal. */
  find(text: string, key: SubjectKey): number {
    const slot = this.columns.find(text, key, tagOf(text, key, this.#secret));
    return slot >= 0 || this.#old === undefined ? slot : this.#findOld(text, key);
  }

  /** Makes a zeroed entry for a key that is not here. */
  insert(text: string, key: SubjectKey): number {
    if (this.#old !== undefined) this.#move(MOVE_PER_INSERT);
    else if (this.columns.count + 1 > room(this.columns.capacity)) this.#resize(this.#grown());
    const slot = this.columns.insert(text, key, tagOf(text, key, this.#secret));
    if (this.columns.lastProbes <= MAX_PROBES || this.hardened) return slot;
    this.#harden();
    return this.find(text, key);
  }

  remove(slot: number): void {
    this.#moved();
    this.columns.remove(slot);
    // What closed the gap may have passed the sweep that is under way, unseen.
    if (this.#sweeping) this.#disturbed = true;
  }

  /** Makes an entry expire `idleMs` from `now`. */
  keepFor(slot: number, now: number, idleMs: number): void {
    const { columns } = this;
    const expiry = now + idleMs;
    columns.records[columns.expiryAt(slot)] = expiry;
    if (expiry < this.nextExpiry) this.nextExpiry = expiry;
  }

  /** The same from the time at `times[at]` on: a place is never boxed, a time may be. */
  keepSince(slot: number, times: Float64Array, at: number, idleMs: number): void {
    const { columns } = this;
    const expiry = times[at]! + idleMs;
    columns.records[columns.expiryAt(slot)] = expiry;
    if (expiry < this.nextExpiry) this.nextExpiry = expiry;
  }

  /** Puts an entry's expiry off to `delays[at]` from `now`, where it would come earlier. */
  keepAtLeast(slot: number, now: number, delays: Float64Array, at: number): void {
    const { records } = this.columns;
    const place = this.columns.expiryAt(slot);
    const needed = now + delays[at]!;
    if (records[place]! < needed) records[place] = needed;
  }

  expiry(slot: number): number {
    const { columns } = this;
    return columns.records[columns.expiryAt(slot)]!;
  }

  /**
   * Removes expired entries among `budget` slots from `from` on; returns where to go on, or -1 at the end.
   * A pass from 0 to the end makes {@link nextExpiry} exact again.
   */
  sweep(from: number, budget: number, now: number): number {
    if (from === 0) {
      this.nextExpiry = Infinity;
      this.#disturbed = false;
    }
    this.#sweeping = true;
    if (this.#old !== undefined) this.#move(budget);
    const { columns } = this;
    let slot = from;
    const end = Math.min(columns.capacity, from + budget);
    while (slot < end) {
      if (!columns.holds(slot)) {
        slot++;
      } else if (columns.hasExpired(slot, now)) {
        // What moves back into the gap is looked at next.
        this.#moved();
        columns.remove(slot);
      } else {
        this.#noteExpiry(slot);
        slot++;
      }
    }
    if (slot < columns.capacity) return slot;
    this.#sweeping = false;
    // Not everything was looked at: come back.
    if (this.#old !== undefined || this.#disturbed) this.nextExpiry = 0;
    this.#shrink();
    return -1;
  }

  #grown(): number {
    const { capacity } = this.columns;
    if (capacity < DOUBLE_UP_TO) return capacity * 2;
    return Math.ceil(capacity * (capacity === DOUBLE_UP_TO ? GROWTH ** (1 - this.#phase) : GROWTH));
  }

  #noteExpiry(slot: number): void {
    const expiry = this.expiry(slot);
    if (expiry < this.nextExpiry) this.nextExpiry = expiry;
  }

  #findOld(text: string, key: SubjectKey): number {
    const old = this.#old!;
    const found = old.find(text, key, tagOf(text, key, this.#oldSecret));
    return found < 0 ? -1 : this.#moveEntry(old, found);
  }

  #moveEntry(old: Columns, from: number): number {
    // Under the same hash function the tag moves along. It changes once, to the keyed one, which needs no hash.
    const tag = this.#secret === this.#oldSecret ? old.tag(from) : keyedTag(old.text(from), this.#secret!);
    const to = this.columns.takeFrom(old, from, tag);
    this.#noteExpiry(to);
    return to;
  }

  #move(budget: number): void {
    const old = this.#old!;
    const end = Math.min(old.capacity, this.#cursor + budget);
    while (this.#cursor < end) {
      const slot = this.#cursor++;
      if (old.holds(slot)) this.#moveEntry(old, slot);
    }
    if (this.#cursor < old.capacity) return;
    this.#old = undefined;
  }

  #settle(): void {
    if (this.#old !== undefined) this.#move(Infinity);
  }

  #moved(): void {
    this.moves = (this.moves + 1) & 0x3fff_ffff;
  }

  #resize(capacity: number): void {
    this.#moved();
    this.#old = this.columns;
    this.#oldSecret = this.#secret;
    this.#cursor = 0;
    this.columns = new Columns(capacity, this.#width, this.#withLogs);
    if (capacity <= DOUBLE_UP_TO) this.#settle();
    else this.#move(MOVE_PER_INSERT);
  }

  #shrink(): void {
    const { capacity, count } = this.columns;
    if (this.#old !== undefined || capacity === INITIAL_CAPACITY || count > capacity * MIN_LOAD) return;
    this.#resize(Math.max(INITIAL_CAPACITY, Math.ceil((2 * count) / MAX_LOAD)));
  }

  #harden(): void {
    this.#settle();
    this.#oldSecret = undefined;
    this.#old = this.columns;
    this.#cursor = 0;
    this.#secret = { k0: randomWord(), k1: randomWord() };
    this.#moved();
    this.columns = new Columns(this.#grown(), this.#width, this.#withLogs);
    this.#move(MOVE_PER_INSERT);
  }
}

function tagOf(text: string, key: SubjectKey, secret: HashSecret | undefined): number {
  return secret === undefined ? Columns.tagOf(key.mixed) : keyedTag(text, secret);
}

function keyedTag(text: string, secret: HashSecret): number {
  return Columns.tagOf(halfSipHash(text, secret));
}

/** How many entries a table holds before it grows. */
function room(capacity: number): number {
  return capacity * (capacity <= DOUBLE_UP_TO ? MAX_SMALL_LOAD : MAX_LOAD);
}

function randomWord(): number {
  return randomInt(0x1_0000_0000) | 0;
}
