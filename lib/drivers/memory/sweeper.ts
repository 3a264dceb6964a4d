import { outsideAnyCall } from '../../core/async-context.js';
import { startTimer, type Clock } from '../../core/clock.js';
import type { Shard } from './shard.js';
import { SHARDS, type SubjectTable } from './subject-table.js';

/** How many slots one slice looks at: well under a millisecond. */
const SLOTS_PER_SLICE = 4_096;

/** What a sweeper needs of its owner, which it must not keep alive. */
export interface SweptStore {
  readonly tables: Iterable<SubjectTable>;
  /** So many entries have expired and are gone. */
  removed(count: number): void;
}

/** Removes what has expired: one shard at a time, in slices. */
export class Sweep {
  readonly #store: SweptStore;
  readonly #now: number;
  readonly #tables: SubjectTable[];
  #table = 0;
  #shard = 0;
  #slot = 0;

  constructor(store: SweptStore, now: number) {
    this.#store = store;
    this.#now = now;
    this.#tables = [...store.tables];
    for (const table of this.#tables) table.forgetRecent();
  }

  /** Looks at about `budget` slots; true when everything has been looked at. */
  slice(budget: number = SLOTS_PER_SLICE): boolean {
    let left = budget;
    while (left > 0) {
      const table = this.#tables[this.#table];
      if (table === undefined) return true;
      const shard = table.retired ? undefined : table.shardAt(this.#shard);
      // The cheap case of a long window: a whole shard in which nothing is due.
      if (shard === undefined || (this.#slot === 0 && shard.nextExpiry > this.#now)) {
        left--;
        this.#nextShard();
        continue;
      }
      left -= this.#sweepSome(table, shard, left);
    }
    return false;
  }

  #sweepSome(table: SubjectTable, shard: Shard, budget: number): number {
    const before = shard.count;
    // Before the sweep: at its end a shard that has emptied is made small.
    const slotsLeft = shard.columns.capacity - this.#slot;
    const next = shard.sweep(this.#slot, budget, this.#now);
    this.#store.removed(before - shard.count);
    if (next >= 0) {
      this.#slot = next;
      return budget;
    }
    if (shard.count === 0) table.dropShard(this.#shard);
    this.#nextShard();
    return Math.min(budget, Math.max(1, slotsLeft));
  }

  #nextShard(): void {
    this.#slot = 0;
    if (++this.#shard < SHARDS) return;
    this.#shard = 0;
    this.#table++;
  }
}

/**
 * Sweeps every `intervalMs`. The timer keeps neither the process nor the store alive, nor anything of the
 * asynchronous context in which the store was made.
 */
export function startSweeping(store: SweptStore, clock: Clock, intervalMs: number): () => void {
  const weak = new WeakRef(store);
  if (clock.setTimer !== undefined) return sweepByClock(weak, clock, intervalMs);
  return outsideAnyCall(() => sweepInRealTime(weak, clock, intervalMs));
}

function sweepInRealTime(weak: WeakRef<SweptStore>, clock: Clock, intervalMs: number): () => void {
  let pending: NodeJS.Immediate | undefined;
  const timer = setInterval(() => {
    const alive = weak.deref();
    if (alive === undefined) return clearInterval(timer);
    if (pending !== undefined) return;
    const sweep = new Sweep(alive, Math.floor(clock.now()));
    const goOn = (): void => {
      pending = undefined;
      if (!sweep.slice()) pending = setImmediate(goOn).unref();
    };
    goOn();
  }, intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    clearImmediate(pending);
  };
}

/** A clock that somebody holds: whole sweeps, at the moments that it says have come. */
function sweepByClock(weak: WeakRef<SweptStore>, clock: Clock, intervalMs: number): () => void {
  let cancel = () => {};
  const next = (): void => {
    cancel = startTimer(clock, run, intervalMs);
  };
  const run = (): void => {
    const alive = weak.deref();
    if (alive === undefined) return;
    const sweep = new Sweep(alive, Math.floor(clock.now()));
    while (!sweep.slice());
    next();
  };
  next();
  return () => cancel();
}
