import { MAX_CLOCK_LEAD_MS } from '../../core/algorithm.js';
import type { CounterStore } from './counter-store.js';
import type { SubjectTable } from './subject-table.js';

/** How long the block was made for. */
const DURATION = 0;
const REGISTERS = 1;

/** Who is blocked, and until when. It is read before every decision once there was a block. */
export class BlockList {
  readonly #store: CounterStore;
  readonly #tables = new Map<string, SubjectTable>();
  /** Whether there was ever a block: most stores never see one. */
  used = false;

  constructor(store: CounterStore) {
    this.#store = store;
  }

  /** How long a subject is still blocked, in milliseconds; 0 where it is not. */
  remainingMs(policy: string, subject: string, now: number): number {
    const table = this.#tables.get(policy);
    if (table === undefined) return 0;
    const slot = this.#store.find(table, subject);
    if (slot < 0) return 0;
    const { shard } = table;
    const durationMs = shard.columns.records[shard.columns.registersAt(slot) + DURATION]!;
    // Made by a clock that was far ahead: it begins now, or it would never end.
    if (shard.expiry(slot) - durationMs > now + MAX_CLOCK_LEAD_MS) shard.keepFor(slot, now, durationMs);
    return Math.max(0, shard.expiry(slot) - now);
  }

  start(policy: string, subject: string, now: number, durationMs: number): void {
    const table = this.#tables.get(policy) ?? this.#open(policy);
    let slot = this.#store.find(table, subject);
    if (slot < 0) slot = this.#store.insert(table, subject, now, durationMs);
    else table.shard.keepFor(slot, now, durationMs);
    const { columns } = table.shard;
    columns.records[columns.registersAt(slot) + DURATION] = durationMs;
  }

  lift(policy: string, subject: string): void {
    const table = this.#tables.get(policy);
    if (table !== undefined) this.#store.remove(table, subject);
  }

  clear(): void {
    this.#tables.clear();
  }

  #open(policy: string): SubjectTable {
    const table = this.#store.open(policy, REGISTERS, false);
    this.#tables.set(policy, table);
    this.used = true;
    return table;
  }
}
