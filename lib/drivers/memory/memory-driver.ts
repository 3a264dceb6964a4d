import { randomInt } from 'node:crypto';
import {
  ALLOWED,
  CHARGED_AT,
  OUTCOME_SLOTS,
  RESET_AFTER,
  type Quota,
  type Receipt,
} from '../../core/algorithm.js';
import { blockedFor } from '../../core/blocked-decision.js';
import { monotonicClock, type Clock } from '../../core/clock.js';
import type {
  Charge,
  Counter,
  Decision,
  Driver,
  DriverStatus,
  SynchronousDriver,
} from '../../core/driver.js';
import type { EvictionEvent } from '../../core/observer.js';
import type { Policy } from '../../core/policy.js';
import { BlockList } from './block-list.js';
import { CoarseClock, type Reading } from './coarse-clock.js';
import { CounterStore } from './counter-store.js';
import { decisionOf } from './decision.js';
import { EntryRing } from './entry-ring.js';
import { GroupTrial } from './group-trial.js';
import type { PolicyTables } from './policy-tables.js';
import { ResetMarks } from './reset-marks.js';
import type { SubjectKey } from './subject-key.js';
import { startSweeping, Sweep } from './sweeper.js';

export interface MemoryDriverOptions {
  /** The most counters and blocks held at once, ≥ 1; default 1,000,000, about 100 bytes each. */
  readonly maxKeys?: number;
  /** How often what has expired is removed, in milliseconds, ≥ 1; default 1,000. */
  readonly sweepIntervalMs?: number;
  readonly clock?: Clock;
  /** Told of each counter that made room for another before it had expired. */
  readonly onEviction?: (event: EvictionEvent) => void;
  /** The start value of the hash; default a random one, which keeps collisions unpredictable. For tests. */
  readonly hashStart?: number;
}

const DEFAULT_MAX_KEYS = 1_000_000;
const DEFAULT_SWEEP_INTERVAL_MS = 1_000;

/** Counters in this process's memory, in typed arrays: 64 shards a policy, no object and no timer a key. */
export class MemoryDriver implements Driver, SynchronousDriver {
  readonly name = 'memory';
  readonly synchronous: SynchronousDriver = this;
  readonly #coarse: CoarseClock;
  /** The time of the call at hand. */
  readonly #time: Reading;
  readonly #store: CounterStore;
  readonly #key: SubjectKey;
  readonly #blocks: BlockList;
  readonly #trial: GroupTrial;
  readonly #resets = new ResetMarks();
  readonly #stopSweeping: () => void;
  readonly #out = new Float64Array(OUTCOME_SLOTS);
  /** The tables that were asked for last, and for which policy: most calls in a row are one policy's. */
  #recent: PolicyTables | undefined;
  #recentPolicy: Policy | undefined;
  /** Counts what may be given back. */
  #serial = 0;

  constructor(options: MemoryDriverOptions = {}) {
    const clock = options.clock ?? monotonicClock;
    this.#coarse = new CoarseClock(clock, options.clock === undefined);
    this.#time = this.#coarse.reading;
    this.#store = new CounterStore({
      maxKeys: options.maxKeys ?? DEFAULT_MAX_KEYS,
      hashStart: options.hashStart ?? randomInt(0x1_0000_0000),
      onEviction: options.onEviction,
      time: this.#time,
    });
    this.#key = this.#store.key;
    this.#blocks = new BlockList(this.#store);
    this.#trial = new GroupTrial(this.#store, this.#blocks);
    const interval = options.sweepIntervalMs ?? DEFAULT_SWEEP_INTERVAL_MS;
    this.#stopSweeping = startSweeping(this.#store, clock, interval);
  }

  decide(group: readonly Charge[]): readonly Decision[] {
    const now = this.#now();
    const decisions =
      group.length === 1 ? [this.#decideAlone(group[0]!)] : this.#trial.decide(group, now, ++this.#serial);
    this.#tellOfEvicted();
    return decisions;
  }

  decideOne(charge: Charge): Decision {
    this.#coarse.touch();
    const decision = this.#decideAlone(charge);
    this.#tellOfEvicted();
    return decision;
  }

  tryTake(policy: Policy, quota: Quota, subject: string, cost: number): boolean {
    this.#coarse.touch();
    if (this.#blocks.used && this.#blocks.remainingMs(policy.name, subject, this.#time.now) > 0) return false;
    const tables = policy === this.#recentPolicy ? this.#recent! : this.#tablesOf(policy);
    this.#take(tables, tables.shapes ? tables.impatient(quota) : quota, subject, cost);
    const allowed = this.#out[ALLOWED] === 1;
    if (this.#store.hasEvicted) this.#store.tellOfEvicted();
    if (allowed) return true;
    if (policy.blockMs > 0) this.#blockAfterTry(tables, policy, quota, subject, cost);
    return false;
  }

  peek(counter: Counter): Decision {
    const now = this.#now();
    const decision = this.#trial.look(counter, 1, now);
    // A lowered limit takes longer to be gone than the counter was to be kept.
    const { counters } = this.#tablesOf(counter.policy);
    const slot = this.#store.find(counters, counter.subject);
    if (slot >= 0 && !counters.shard.columns.hasExpired(slot, now)) {
      this.#out[RESET_AFTER] = decision.resetAfterMs;
      counters.shard.keepAtLeast(slot, now, this.#out, RESET_AFTER);
    }
    return decision;
  }

  refund(counter: Counter, receipt: Receipt): void {
    if (this.#resets.voids(counter.policy.name, counter.subject, receipt)) return;
    this.#giveBack(counter, receipt.cost, receipt);
  }

  giveBack(counter: Counter, cost: number): void {
    this.#giveBack(counter, cost, null);
  }

  reset(counter: Counter): void {
    const { policy, subject } = counter;
    const tables = this.#store.existingTablesOf(policy);
    if (tables !== undefined && this.#store.remove(tables.counters, subject)) {
      this.#resets.mark(policy.name, subject, this.#serial);
    }
    this.unblock(counter);
  }

  block(counter: Counter, durationMs: number): void {
    this.#blocks.start(counter.policy.name, counter.subject, this.#now(), durationMs);
    this.#tellOfEvicted();
  }

  unblock(counter: Counter): void {
    this.#blocks.lift(counter.policy.name, counter.subject);
  }

  status(): DriverStatus {
    return {
      driver: this.name,
      breaker: null,
      fleetSize: null,
      keys: this.#store.keys,
      evictions: this.#store.evictions,
      lastError: null,
    };
  }

  /** Removes everything that has expired, at once; in the normal course a timer does it in slices. */
  sweep(): void {
    const sweep = new Sweep(this.#store, this.#now());
    while (!sweep.slice());
  }

  /** @internal */
  get store(): CounterStore {
    return this.#store;
  }

  async close(): Promise<void> {
    this.#stopSweeping();
    this.#store.close();
    this.#blocks.clear();
    this.#recentPolicy = undefined;
  }

  #now(): number {
    this.#coarse.refresh();
    return this.#time.now;
  }

  #decideAlone({ policy, quota, subject, cost }: Charge): Decision {
    const now = this.#time.now;
    if (this.#blocks.used && this.#blocks.remainingMs(policy.name, subject, now) > 0) {
      return this.#trial.look({ policy, quota, subject }, cost, now);
    }
    this.#take(this.#tablesOf(policy), quota, subject, cost);
    const decision = decisionOf(this.#out, quota, cost, ++this.#serial);
    if (decision.allowed || policy.blockMs === 0 || policy.mode === 'shadow') return decision;
    this.#blocks.start(policy.name, subject, now, policy.blockMs);
    return blockedFor(decision, policy.blockMs);
  }

  /**
   * Decides one charge in place, at the coarse clock's time: the short way for what is most calls. The outcome is in
   * `#out`.
   */
  #take(tables: PolicyTables, quota: Quota, subject: string, cost: number): void {
    const { algorithm, counters } = tables;
    const slot = counters.find(subject, this.#key);
    if (slot < 0) return this.#takeFirst(tables, quota, subject, cost);
    const { shard } = counters;
    const now = this.#time.now;
    const { columns } = shard;
    if (columns.hasExpired(slot, now)) columns.startAfresh(slot);
    if (algorithm.shape === 'log') algorithm.step(columns.logs![slot]!, quota, now, cost, this.#out);
    else algorithm.step(columns.records, columns.registersAt(slot), quota, now, cost, this.#out);
    // By the time it was counted at, which is later than a clock that has stepped back.
    shard.keepSince(slot, this.#out, CHARGED_AT, tables.idleMs(quota));
    // More than a lowered limit or burst allows may be used: that takes longer to be gone than any full counter.
    if (this.#out[ALLOWED] === 0) shard.keepAtLeast(slot, now, this.#out, RESET_AFTER);
  }

  /** Decides the first charge of a subject. A denial leaves nothing behind. */
  #takeFirst(tables: PolicyTables, quota: Quota, subject: string, cost: number): void {
    const { algorithm, counters } = tables;
    const now = this.#time.now;
    const out = this.#out;
    const idleMs = tables.idleMs(quota);
    if (algorithm.shape === 'log') {
      const log = new EntryRing();
      algorithm.step(log, quota, now, cost, out);
      if (log.size > 0) this.#store.insert(counters, subject, out[CHARGED_AT]!, idleMs, log);
      return;
    }
    const { scratch } = tables;
    scratch.fill(0);
    algorithm.step(scratch, 0, quota, now, cost, out);
    if (out[ALLOWED] === 0) return;
    const slot = this.#store.insert(counters, subject, out[CHARGED_AT]!, idleMs);
    const { columns } = counters.shard;
    const offset = columns.registersAt(slot);
    for (let i = 0; i < counters.width; i++) columns.records[offset + i] = scratch[i]!;
  }

  /** Starts the policy's block, unless it was only the wait that kept the call from going at once. */
  #blockAfterTry(tables: PolicyTables, policy: Policy, quota: Quota, subject: string, cost: number): void {
    if (policy.mode === 'shadow') return;
    const now = this.#time.now;
    if (tables.shapes && this.#trial.hasPlace({ policy, quota, subject }, cost, now)) return;
    this.#blocks.start(policy.name, subject, now, policy.blockMs);
  }

  #giveBack({ policy, quota, subject }: Counter, cost: number, receipt: Receipt | null): void {
    const tables = this.#store.existingTablesOf(policy);
    if (tables === undefined) return;
    // From before the policy's algorithm was another one.
    if (receipt?.serial !== undefined && receipt.serial <= tables.sinceSerial) return;
    const { algorithm, counters } = tables;
    const slot = this.#store.find(counters, subject);
    const { columns } = counters.shard;
    const now = this.#now();
    if (slot < 0 || columns.hasExpired(slot, now)) return;
    if (algorithm.shape === 'log') algorithm.refund(columns.logs![slot]!, quota, now, cost, receipt);
    else algorithm.refund(columns.records, columns.registersAt(slot), quota, now, cost, receipt);
  }

  #tellOfEvicted(): void {
    if (this.#store.hasEvicted) this.#store.tellOfEvicted();
  }

  #tablesOf(policy: Policy): PolicyTables {
    const tables = this.#store.tablesOf(policy, this.#serial);
    this.#recentPolicy = policy;
    this.#recent = tables;
    return tables;
  }
}
