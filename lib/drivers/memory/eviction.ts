import type { Shard } from './shard.js';
import { SHARDS, type SubjectTable } from './subject-table.js';

/** How many entries are compared. A store of no more than these gives up exactly what expires next. */
const CANDIDATES = 128;

/** Where the hand that goes round all entries stands. */
export class EvictionHand {
  #table = 0;
  #shard = 0;
  #slot = 0;

  /**
   * Removes, of the next entries on the way round, the one that is nearest to expiry, and returns whose it was;
   * `undefined` when there is none. In a large store that is not the nearest of all, but among the nearest hundredth.
   */
  evict(tables: readonly SubjectTable[]): { policy: string; subject: string; expiry: number } | undefined {
    let seen = 0;
    let table: SubjectTable | undefined;
    let shard: Shard | undefined;
    let nearest = -1;
    let expiry = Infinity;
    for (let shardsLeft = tables.length * SHARDS + 1; shardsLeft > 0 && seen < CANDIDATES; shardsLeft--) {
      const here = tables[this.#table]?.shardAt(this.#shard);
      if (here !== undefined) {
        const { columns } = here;
        while (this.#slot < columns.capacity && seen < CANDIDATES) {
          const slot = this.#slot++;
          if (!columns.holds(slot)) continue;
          seen++;
          if (nearest >= 0 && here.expiry(slot) >= expiry) continue;
          table = tables[this.#table];
          shard = here;
          nearest = slot;
          expiry = here.expiry(slot);
        }
        if (this.#slot < columns.capacity) continue;
      }
      this.#nextShard(tables.length);
    }
    if (shard === undefined || table === undefined) return undefined;
    const subject = shard.columns.text(nearest);
    shard.remove(nearest);
    return { policy: table.policy, subject, expiry };
  }

  #nextShard(tables: number): void {
    this.#slot = 0;
    if (++this.#shard < SHARDS) return;
    this.#shard = 0;
    this.#table = this.#table + 1 < tables ? this.#table + 1 : 0;
  }
}
