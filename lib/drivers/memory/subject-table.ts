import { fnv1a32 } from './fnv1a.js';
import { Shard } from './shard.js';

export const SHARDS = 64;

/** The counters of one policy, or its blocks: 64 shards, FNV-1a picks the shard. */
export class SubjectTable {
  readonly policy: string;
  readonly width: number;
  readonly #withLogs: boolean;
  readonly #start: number;
  readonly #shards: (Shard | undefined)[] = new Array<Shard | undefined>(SHARDS).fill(undefined);

  /** @param start the secret start value of the hash */
  constructor(policy: string, width: number, withLogs: boolean, start: number) {
    this.policy = policy;
    this.width = width;
    this.#withLogs = withLogs;
    this.#start = start;
  }

  hash(subject: string): number {
    return fnv1a32(subject, this.#start);
  }

  /** The shard of a hash, made on first use. */
  shard(hash: number): Shard {
    const index = hash % SHARDS;
    return (this.#shards[index] ??= new Shard(this.width, this.#withLogs));
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
