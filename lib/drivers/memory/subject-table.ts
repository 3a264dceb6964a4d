import { RecentPlaces } from './recent-places.js';
import { Shard } from './shard.js';
import type { SubjectKey } from './subject-key.js';

export const SHARDS = 64;

/** The counters of one policy, or its blocks: 64 shards, FNV-1a picks the shard. */
export class SubjectTable {
  readonly policy: string;
  readonly width: number;
  readonly #withLogs: boolean;
  /** Its entries count no more: another table, or none, has taken its place. */
  retired = false;
  readonly #shards: (Shard | undefined)[] = new Array<Shard | undefined>(SHARDS).fill(undefined);
  readonly #recent = new RecentPlaces(this.#shards);
  /** The shard of the subject that {@link find} was asked for last, whether it was there or not. */
  shard: Shard = undefined!;

  constructor(policy: string, width: number, withLogs: boolean) {
    this.policy = policy;
    this.width = width;
    this.#withLogs = withLogs;
  }

  /** The slot of a subject in {@link shard}, or -1: then `key` is ready for its insertion. */
  find(text: string, key: SubjectKey): number {
    const slot = this.#recent.find(text);
    if (slot < 0) return this.#lookUp(text, key);
    this.shard = this.#shards[this.#recent.shard]!;
    return slot;
  }

  shardAt(index: number): Shard | undefined {
    return this.#shards[index];
  }

  /** Lets go of a shard that holds nothing any more. */
  dropShard(index: number): void {
    this.#shards[index] = undefined;
    this.forgetRecent();
  }

  /** Lets go of the strings of recent subjects. */
  forgetRecent(): void {
    this.#recent.clear();
  }

  get count(): number {
    let count = 0;
    for (const shard of this.#shards) count += shard?.count ?? 0;
    return count;
  }

  #lookUp(text: string, key: SubjectKey): number {
    key.set(text);
    // The same as the remainder, but of integers: V8 takes the remainder of an unsigned number as floating point.
    const index = key.hash & (SHARDS - 1);
    const shard = this.#shards[index] ?? this.#open(index);
    this.shard = shard;
    const slot = shard.find(text, key);
    if (slot >= 0) this.#recent.remember(text, index, slot);
    return slot;
  }

  #open(index: number): Shard {
    const shard = new Shard(this.width, this.#withLogs, index / SHARDS);
    this.#shards[index] = shard;
    return shard;
  }
}
