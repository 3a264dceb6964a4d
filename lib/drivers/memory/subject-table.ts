import { Shard } from './shard.js';

export const SHARDS = 64;

/** The counters of one policy, or its blocks: 64 shards, FNV-1a picks the shard. */
export class SubjectTable {
  readonly policy: string;
  readonly width: number;
  readonly #withLogs: boolean;
  /** Its entries count no more: another table, or none, has taken its place. */
  retired = false;
  readonly #shards: (Shard | undefined)[] = new Array<Shard | undefined>(SHARDS).fill(undefined);

  constructor(policy: string, width: number, withLogs: boolean) {
    this.policy = policy;
    this.width = width;
    this.#withLogs = withLogs;
  }

  /** The shard of a hash (signed or not), made on first use. */
  shard(hash: number): Shard {
    // The same as the remainder, but of integers: V8 takes the remainder of an unsigned number as floating point.
    return this.#shards[hash & (SHARDS - 1)] ?? this.#open(hash & (SHARDS - 1));
  }

  #open(index: number): Shard {
    const shard = new Shard(this.width, this.#withLogs, index / SHARDS);
    this.#shards[index] = shard;
    return shard;
  }

  shardAt(index: number): Shard | undefined {
    return this.#shards[index];
  }

  /** Lets go of a shard that holds nothing any more. */
  dropShard(index: number): void {
    this.#shards[index] = undefined;
  }

  get count(): number {
    let count = 0;
    for (const shard of this.#shards) count += shard?.count ?? 0;
    return count;
  }
}
