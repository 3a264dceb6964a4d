import { RateLimitError } from '../../core/errors.js';
import type { EvictionEvent } from '../../core/observer.js';
import type { Policy } from '../../core/policy.js';
import type { Reading } from './coarse-clock.js';
import type { EntryRing } from './entry-ring.js';
import { EvictionHand } from './eviction.js';
import { PolicyTables } from './policy-tables.js';
import { SubjectKey } from './subject-key.js';
import { SubjectTable } from './subject-table.js';
import type { SweptStore } from './sweeper.js';

export interface CounterStoreOptions {
  readonly maxKeys: number;
  /** The start value of the hash. */
  readonly hashStart: number;
  readonly onEviction: ((event: EvictionEvent) => void) | undefined;
  /** The time of the call at hand. */
  readonly time: Reading;
}

/** All entries of a driver, counters and blocks, and the bound on how many there may be. */
export class CounterStore implements SweptStore {
  readonly #options: CounterStoreOptions;
  /** The subject of the look-up at hand. */
  readonly key: SubjectKey;
  readonly #policies = new Map<string, PolicyTables>();
  readonly #hand = new EvictionHand();
  #tables: SubjectTable[] = [];
  /** Whoever made room during the call at hand. Told of when nothing is half done: who is told may call back. */
  #evicted: EvictionEvent[] = [];
  /** {@link tellOfEvicted} has something to tell. */
  hasEvicted = false;
  #keys = 0;
  #evictions = 0;
  #closed = false;

  constructor(options: CounterStoreOptions) {
    this.#options = options;
    this.key = new SubjectKey(options.hashStart);
  }

  get keys(): number {
    return this.#keys;
  }

  get evictions(): number {
    return this.#evictions;
  }

  get tables(): readonly SubjectTable[] {
    return this.#tables;
  }

  removed(count: number): void {
    this.#keys -= count;
  }

  /**
   * The counters of a policy, made on first use, and anew where its algorithm has changed: that starts afresh.
   * @param serial of the last charge that was made
   */
  tablesOf(policy: Policy, serial: number): PolicyTables {
    const tables = this.#policies.get(policy.name);
    return tables?.algorithm === policy.arithmetic ? tables : this.#openTables(policy, tables, serial);
  }

  /** The counters of a policy, if there are any under its algorithm. */
  existingTablesOf(policy: Policy): PolicyTables | undefined {
    const tables = this.#policies.get(policy.name);
    return tables?.algorithm.name === policy.algorithm ? tables : undefined;
  }

  open(policy: string, width: number, withLogs: boolean): SubjectTable {
    this.#requireOpen();
    const table = new SubjectTable(policy, width, withLogs);
    this.#tables.push(table);
    return table;
  }

  /** The slot of a subject in `table.shard`, or -1: then {@link insert} may follow. */
  find(table: SubjectTable, subject: string): number {
    return table.find(subject, this.key);
  }

  /** Makes an entry for the subject that was not found last, and room for it first where the store is full. */
  insert(table: SubjectTable, subject: string, now: number, lifeMs: number, log?: EntryRing): number {
    if (this.#keys >= this.#options.maxKeys) this.#evict();
    return this.add(table, subject, now, lifeMs, log);
  }

  /** As {@link insert}, where {@link makeRoomFor} has made room. */
  add(table: SubjectTable, subject: string, now: number, lifeMs: number, log?: EntryRing): number {
    const { shard } = table;
    this.#keys++;
    const slot = shard.insert(subject, this.key);
    if (log !== undefined) shard.columns.logs![slot] = log;
    shard.keepFor(slot, now, lifeMs);
    return slot;
  }

  /**
   * Makes room until what `needed` counts fits, at most `most`. It is counted again after each eviction, which may have
   * hit one of those that are wanted.
   */
  makeRoomFor(most: number, needed: () => number): void {
    if (this.#keys + most <= this.#options.maxKeys) return;
    while (this.#keys > 0 && this.#keys + needed() > this.#options.maxKeys) this.#evict();
  }

  /** Whether there was an entry to remove. */
  remove(table: SubjectTable, subject: string): boolean {
    const slot = this.find(table, subject);
    if (slot < 0) return false;
    table.shard.remove(slot);
    this.#keys--;
    return true;
  }

  tellOfEvicted(): void {
    const evicted = this.#evicted;
    this.hasEvicted = false;
    this.#evicted = [];
    for (const event of evicted) this.#options.onEviction!(event);
  }

  close(): void {
    this.#closed = true;
    this.#policies.clear();
    for (const table of this.#tables) table.retired = true;
    this.#tables = [];
    this.#keys = 0;
  }

  #evict(): void {
    const evicted = this.#hand.evict(this.#tables);
    if (evicted === undefined) return;
    this.#keys--;
    const remainingMs = evicted.expiry - this.#options.time.now;
    if (remainingMs <= 0) return;
    this.#evictions++;
    if (this.#options.onEviction === undefined) return;
    this.hasEvicted = true;
    this.#evicted.push({ policy: evicted.policy, subject: evicted.subject, remainingMs });
  }

  #openTables(policy: Policy, previous: PolicyTables | undefined, serial: number): PolicyTables {
    this.#requireOpen();
    if (previous !== undefined) {
      this.#keys -= previous.counters.count;
      previous.counters.retired = true;
      this.#tables = this.#tables.filter((table) => table !== previous.counters);
    }
    const tables = new PolicyTables(policy.name, policy.arithmetic, serial);
    this.#policies.set(policy.name, tables);
    this.#tables.push(tables.counters);
    return tables;
  }

  /** @throws RateLimitError with `RL_CLOSED` */
  #requireOpen(): void {
    if (this.#closed) throw new RateLimitError('RL_CLOSED', 'the driver was closed');
  }
}
