import { randomInt } from 'node:crypto';
import {
  ALLOWED,
  CHARGED_AT,
  DELAY,
  MARK,
  OUTCOME_SLOTS,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Quota,
  type Receipt,
} from '../../core/algorithm.js';
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
import { CoarseClock, type Reading } from './coarse-clock.js';
import { EntryRing } from './entry-ring.js';
import { EvictionHand } from './eviction.js';
import type { Shard } from './shard.js';
import { PolicyTables } from './policy-tables.js';
import { SubjectKey } from './subject-key.js';
import { SubjectTable } from './subject-table.js';
import { startSweeping, Sweep, type SweptStore } from './sweeper.js';

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

/** One charge of a group on trial: what it would find, and what it would leave. */
interface Trial {
  readonly counter: Counter;
  readonly cost: number;
  /** Where its registers stand in the scratch; charges of one counter share them. */
  readonly offset: number;
  readonly log: EntryRing | undefined;
  readonly blockedMs: number;
  /** What the algorithm would take, the block apart; `undefined` where it denied. */
  readonly receipt: Receipt | undefined;
  readonly decision: Decision;
}

const DEFAULT_MAX_KEYS = 1_000_000;
const DEFAULT_SWEEP_INTERVAL_MS = 1_000;
/** A block is nothing but its expiry. */
const BLOCK_REGISTERS = 0;

/** Counters in this process's memory, in typed arrays: 64 shards a policy, no object and no timer a key. */
export class MemoryDriver implements Driver, SynchronousDriver, SweptStore {
  readonly name = 'memory';
  readonly synchronous: SynchronousDriver = this;
  readonly #clock: Clock;
  readonly #coarse: CoarseClock;
  /** The time of the call at hand. */
  readonly #time: Reading;
  readonly #maxKeys: number;
  /** The subject of the look-up at hand. */
  readonly #key: SubjectKey;
  readonly #onEviction: MemoryDriverOptions['onEviction'];
  readonly #stopSweeping: () => void;
  readonly #policies = new Map<string, PolicyTables>();
  readonly #blocks = new Map<string, SubjectTable>();
  readonly #hand = new EvictionHand();
  readonly #out = new Float64Array(OUTCOME_SLOTS);
  /** Whether there was ever a block: most stores never see one. */
  #blockMade = false;
  #scratch = new Float64Array(64);
  #tables: SubjectTable[] = [];
  /** The tables that were asked for last, and for which policy: most calls in a row are one policy's. */
  #recent: PolicyTables | undefined;
  #recentPolicy: Policy | undefined;
  /** Whoever made room during the call at hand. Told of when nothing is half done: who is told may call back. */
  #evicted: EvictionEvent[] = [];
  #keys = 0;
  #evictions = 0;

  constructor(options: MemoryDriverOptions = {}) {
    this.#clock = options.clock ?? monotonicClock;
    this.#coarse = new CoarseClock(this.#clock, options.clock === undefined);
    this.#time = this.#coarse.reading;
    this.#maxKeys = options.maxKeys ?? DEFAULT_MAX_KEYS;
    this.#key = new SubjectKey(options.hashStart ?? randomInt(0x1_0000_0000));
    this.#onEviction = options.onEviction;
    const interval = options.sweepIntervalMs ?? DEFAULT_SWEEP_INTERVAL_MS;
    this.#stopSweeping = startSweeping(this, this.#clock, interval);
  }

  decide(group: readonly Charge[]): readonly Decision[] {
    this.#coarse.refresh();
    if (group.length === 1) return [this.#decideAlone(group[0]!)];
    const decisions = this.#decideTogether(group, this.#time.now);
    this.#tellOfEvicted();
    return decisions;
  }

  decideOne(charge: Charge): Decision {
    this.#coarse.touch();
    return this.#decideAlone(charge);
  }

  tryTake(policy: Policy, quota: Quota, subject: string, cost: number): boolean {
    this.#coarse.touch();
    if (this.#blockMade && this.#blockedMs(policy.name, subject, this.#time.now) > 0) return false;
    const tables = policy === this.#recentPolicy ? this.#recent! : this.#tablesOf(policy);
    this.#take(tables, tables.shapes ? tables.impatient(quota) : quota, subject, cost);
    if (this.#out[ALLOWED] === 1) return true;
    if (policy.blockMs > 0) this.#blockAfterTry(tables, policy, quota, subject, cost);
    return false;
  }

  /** Starts the policy's block, unless it was only the wait that kept the call from going at once. */
  #blockAfterTry(tables: PolicyTables, policy: Policy, quota: Quota, subject: string, cost: number): void {
    if (policy.mode === 'shadow' || (tables.shapes && this.#hasPlace(policy, quota, subject, cost))) return;
    this.#startBlock(policy.name, subject, this.#time.now, policy.blockMs);
  }

  /** Whether a call that can't go at once would at least have found a place to wait: then it was not denied. */
  #hasPlace(policy: Policy, quota: Quota, subject: string, cost: number): boolean {
    const trials: Trial[] = [];
    this.#try({ policy, quota, subject }, cost, this.#time.now, trials);
    return trials[0]!.receipt !== undefined;
  }

  peek(counter: Counter): Decision {
    const now = this.#now();
    const trials: Trial[] = [];
    this.#try(counter, 1, now, trials);
    const trial = trials[0]!;
    this.#undo(trial, now);
    return trial.receipt === undefined ? trial.decision : this.#measured(trial, now);
  }

  refund(counter: Counter, receipt: Receipt): void {
    this.#giveBack(counter, receipt.cost, receipt);
  }

  giveBack(counter: Counter, cost: number): void {
    this.#giveBack(counter, cost, null);
  }

  reset(counter: Counter): void {
    this.#remove(this.#policies.get(counter.policy.name)?.counters, counter.subject);
    this.unblock(counter);
  }

  block(counter: Counter, durationMs: number): void {
    this.#startBlock(counter.policy.name, counter.subject, this.#now(), durationMs);
  }

  unblock(counter: Counter): void {
    this.#remove(this.#blocks.get(counter.policy.name), counter.subject);
  }

  status(): DriverStatus {
    return {
      driver: this.name,
      breaker: null,
      fleetSize: null,
      keys: this.#keys,
      evictions: this.#evictions,
      lastError: null,
    };
  }

  /** Removes everything that has expired, at once; in the normal course a timer does it in slices. */
  sweep(): void {
    const sweep = new Sweep(this, this.#now());
    while (!sweep.slice());
  }

  async close(): Promise<void> {
    this.#stopSweeping();
    this.#policies.clear();
    this.#blocks.clear();
    for (const table of this.#tables) table.retired = true;
    this.#tables = [];
    this.#recentPolicy = undefined;
    this.#keys = 0;
  }

  /** @internal */
  get tables(): readonly SubjectTable[] {
    return this.#tables;
  }

  /** @internal */
  removed(count: number): void {
    this.#keys -= count;
  }

  #now(): number {
    this.#coarse.refresh();
    return this.#time.now;
  }

  #decideAlone({ policy, quota, subject, cost }: Charge): Decision {
    const now = this.#time.now;
    if (this.#blockMade && this.#blockedMs(policy.name, subject, now) > 0) {
      const trials: Trial[] = [];
      this.#try({ policy, quota, subject }, cost, now, trials);
      this.#undo(trials[0]!, now);
      return trials[0]!.decision;
    }
    this.#take(this.#tablesOf(policy), quota, subject, cost);
    const decision = this.#outcome(quota, cost);
    return decision.allowed ? decision : this.#afterDenial({ policy, quota, subject }, decision, now);
  }

  /**
   * Decides one charge in place, at the coarse clock's time: the short way for what is most calls. The outcome is in
   * `#out`.
   */
  #take(tables: PolicyTables, quota: Quota, subject: string, cost: number): void {
    const { algorithm, counters } = tables;
    const slot = counters.find(subject, this.#key);
    const { shard } = counters;
    if (slot < 0) return this.#takeFirst(tables, shard, quota, subject, cost);
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
  #takeFirst(tables: PolicyTables, shard: Shard, quota: Quota, subject: string, cost: number): void {
    const { algorithm, counters } = tables;
    const now = this.#time.now;
    const idleMs = tables.idleMs(quota);
    if (algorithm.shape === 'log') {
      const log = new EntryRing();
      algorithm.step(log, quota, now, cost, this.#out);
      if (log.size > 0) this.#insert(shard, subject, this.#out[CHARGED_AT]!, idleMs, log);
      return this.#tellOfEvicted();
    }
    const scratch = this.#scratch;
    for (let i = 0; i < counters.width; i++) scratch[i] = 0;
    algorithm.step(scratch, 0, quota, now, cost, this.#out);
    if (this.#out[ALLOWED] === 0) return;
    const slot = this.#insert(shard, subject, this.#out[CHARGED_AT]!, idleMs);
    const { records } = shard.columns;
    const offset = shard.columns.registersAt(slot);
    for (let i = 0; i < counters.width; i++) records[offset + i] = scratch[i]!;
    this.#tellOfEvicted();
  }

  #decideTogether(group: readonly Charge[], now: number): readonly Decision[] {
    const trials: Trial[] = [];
    for (const charge of group) this.#try(charge, charge.cost, now, trials);
    const passes = trials.every(
      ({ decision, counter }) => decision.allowed || counter.policy.mode === 'shadow',
    );
    if (passes) {
      for (const trial of trials) {
        if (trial.decision.allowed) this.#commit(trial);
        else this.#undo(trial, now);
      }
      return trials.map(({ decision }) => decision);
    }
    for (const trial of trials.toReversed()) this.#undo(trial, now);
    for (const trial of trials) this.#keepCorrection(trial, trials, now);
    return trials.map((trial) =>
      trial.decision.allowed
        ? this.#measured(trial, now)
        : this.#afterDenial(trial.counter, trial.decision, now, trial.blockedMs),
    );
  }

  /** Steps on a copy of the registers, or on the log itself, to be taken back by `#undo`. */
  #try(counter: Counter, cost: number, now: number, trials: Trial[]): void {
    const { policy, quota, subject } = counter;
    const { algorithm, counters } = this.#tablesOf(policy);
    const earlier = trials.find(
      (t) => t.counter.policy.name === policy.name && t.counter.subject === subject,
    );
    const offset = earlier?.offset ?? this.#scratchAfter(trials.at(-1), counters.width);
    let log = earlier?.log;
    if (earlier === undefined) log = this.#load(counters, subject, now, offset);
    if (algorithm.shape === 'log') algorithm.step((log ??= new EntryRing()), quota, now, cost, this.#out);
    else algorithm.step(this.#scratch, offset, quota, now, cost, this.#out);
    const outcome = this.#outcome(quota, cost);
    const blockedMs = this.#blockedMs(policy.name, subject, now);
    const decision = blockedMs > 0 ? blocked(outcome, blockedMs) : outcome;
    trials.push({ counter, cost, offset, log, blockedMs, receipt: outcome.receipt, decision });
  }

  #scratchAfter(last: Trial | undefined, width: number): number {
    const offset = last === undefined ? 0 : last.offset + this.#tablesOf(last.counter.policy).counters.width;
    if (offset + width > this.#scratch.length) {
      const grown = new Float64Array(2 * (offset + width));
      grown.set(this.#scratch);
      this.#scratch = grown;
    }
    return offset;
  }

  /** Copies a counter's registers into the scratch, zeros where there are none; returns its log. */
  #load(counters: SubjectTable, subject: string, now: number, offset: number): EntryRing | undefined {
    const { width } = counters;
    this.#scratch.fill(0, offset, offset + width);
    const slot = counters.find(subject, this.#key);
    const { shard } = counters;
    const { columns } = shard;
    if (slot < 0 || columns.hasExpired(slot, now)) return undefined;
    const from = columns.registersAt(slot);
    for (let i = 0; i < width; i++) this.#scratch[offset + i] = columns.records[from + i]!;
    return columns.logs?.[slot];
  }

  #commit({ counter, offset, log, receipt }: Trial): void {
    const tables = this.#tablesOf(counter.policy);
    const { width } = tables.counters;
    const idleMs = tables.idleMs(counter.quota);
    let slot = tables.counters.find(counter.subject, this.#key);
    const { shard } = tables.counters;
    if (slot < 0) slot = this.#insert(shard, counter.subject, receipt!.chargedAt, idleMs, log);
    const { columns } = shard;
    const to = columns.registersAt(slot);
    for (let i = 0; i < width; i++) columns.records[to + i] = this.#scratch[offset + i]!;
    if (log !== undefined) columns.logs![slot] = log;
    shard.keepFor(slot, receipt!.chargedAt, idleMs);
  }

  /**
   * A counter that denied may have corrected its times all the same: a clock that jumped must not lock it for good. One
   * that several charges of the group share was not only corrected, but charged on trial.
   */
  #keepCorrection(
    { counter, offset, receipt, decision }: Trial,
    trials: readonly Trial[],
    now: number,
  ): void {
    const alone = trials.every((other) => other.counter === counter || other.offset !== offset);
    if (receipt !== undefined || !alone) return;
    const { counters } = this.#tablesOf(counter.policy);
    const slot = counters.find(counter.subject, this.#key);
    const { shard } = counters;
    if (slot < 0) return;
    const { columns } = shard;
    const to = columns.registersAt(slot);
    for (let i = 0; i < counters.width; i++) columns.records[to + i] = this.#scratch[offset + i]!;
    if (shard.expiry(slot) < now + decision.resetAfterMs) shard.keepFor(slot, now, decision.resetAfterMs);
  }

  /** Registers were stepped on a copy; only a log has to give back what it took. */
  #undo({ counter, cost, log, receipt }: Trial, now: number): void {
    if (log === undefined || receipt === undefined) return;
    const { algorithm } = this.#tablesOf(counter.policy);
    if (algorithm.shape === 'log') algorithm.refund(log, counter.quota, now, cost, receipt);
  }

  /** What a trial that was taken back reports: admitted, and what is left without it. */
  #measured({ counter, decision }: Trial, now: number): Decision {
    const { policy, quota, subject } = counter;
    const { algorithm, counters } = this.#tablesOf(policy);
    const log = this.#load(counters, subject, now, 0);
    if (algorithm.shape === 'log') algorithm.step(log ?? new EntryRing(), quota, now, 0, this.#out);
    else algorithm.step(this.#scratch, 0, quota, now, 0, this.#out);
    const remaining = decision.allowed ? this.#out[REMAINING]! : 0;
    const resetAfterMs = Math.max(this.#out[RESET_AFTER]!, decision.allowed ? 0 : decision.resetAfterMs);
    return { ...decision, remaining, resetAfterMs, receipt: undefined };
  }

  /** Starts the policy's block where this denial is one of its own. */
  #afterDenial({ policy, subject }: Counter, denial: Decision, now: number, blockedMs = 0): Decision {
    if (policy.blockMs === 0 || policy.mode === 'shadow' || blockedMs > 0) return denial;
    this.#startBlock(policy.name, subject, now, policy.blockMs);
    return blocked(denial, policy.blockMs);
  }

  #outcome(quota: Quota, cost: number): Decision {
    const out = this.#out;
    const allowed = out[ALLOWED] === 1;
    return {
      allowed,
      remaining: out[REMAINING]!,
      retryAfterMs: out[RETRY_AFTER]!,
      resetAfterMs: out[RESET_AFTER]!,
      delayMs: out[DELAY]!,
      servedBy: 'memory',
      receipt: allowed
        ? {
            cost,
            limit: quota.limit,
            windowMs: quota.windowMs,
            chargedAt: out[CHARGED_AT]!,
            mark: out[MARK]!,
          }
        : undefined,
    };
  }

  #giveBack({ policy, quota, subject }: Counter, cost: number, receipt: Receipt | null): void {
    const tables = this.#policies.get(policy.name);
    if (tables === undefined || tables.algorithm.name !== policy.algorithm) return;
    const { algorithm, counters } = tables;
    const slot = counters.find(subject, this.#key);
    const { shard } = counters;
    const { columns } = shard;
    const now = this.#now();
    if (slot < 0 || columns.hasExpired(slot, now)) return;
    if (algorithm.shape === 'log') algorithm.refund(columns.logs![slot]!, quota, now, cost, receipt);
    else algorithm.refund(columns.records, columns.registersAt(slot), quota, now, cost, receipt);
  }

  /** How long a subject is still blocked; 0 where it is not. */
  #blockedMs(policy: string, subject: string, now: number): number {
    const blocks = this.#blocks.get(policy);
    if (blocks === undefined) return 0;
    const slot = blocks.find(subject, this.#key);
    const { shard } = blocks;
    return slot < 0 ? 0 : Math.max(0, shard.expiry(slot) - now);
  }

  #startBlock(policy: string, subject: string, now: number, durationMs: number): void {
    let blocks = this.#blocks.get(policy);
    if (blocks === undefined) {
      blocks = new SubjectTable(policy, BLOCK_REGISTERS, false);
      this.#blocks.set(policy, blocks);
      this.#blockMade = true;
      this.#tables.push(blocks);
    }
    const slot = blocks.find(subject, this.#key);
    const { shard } = blocks;
    if (slot < 0) this.#insert(shard, subject, now, durationMs);
    else shard.keepFor(slot, now, durationMs);
    this.#tellOfEvicted();
  }

  #remove(table: SubjectTable | undefined, subject: string): void {
    if (table === undefined) return;
    const slot = table.find(subject, this.#key);
    const { shard } = table;
    if (slot < 0) return;
    shard.remove(slot);
    this.#keys--;
  }

  /** Makes an entry for `#key`, which is not there, and room for it first where the store is full. */
  #insert(shard: Shard, subject: string, now: number, lifeMs: number, log?: EntryRing): number {
    if (this.#keys >= this.#maxKeys) this.#evict();
    this.#keys++;
    const slot = shard.insert(subject, this.#key);
    if (log !== undefined) shard.columns.logs![slot] = log;
    shard.keepFor(slot, now, lifeMs);
    return slot;
  }

  #evict(): void {
    const evicted = this.#hand.evict(this.#tables);
    if (evicted === undefined) return;
    this.#keys--;
    const remainingMs = evicted.expiry - this.#time.now;
    if (remainingMs <= 0) return;
    this.#evictions++;
    if (this.#onEviction === undefined) return;
    this.#evicted.push({ policy: evicted.policy, subject: evicted.subject, remainingMs });
  }

  #tellOfEvicted(): void {
    if (this.#evicted.length === 0) return;
    const evicted = this.#evicted;
    const outcome = this.#out.slice();
    this.#evicted = [];
    for (const event of evicted) this.#onEviction!(event);
    this.#out.set(outcome);
  }

  #tablesOf(policy: Policy): PolicyTables {
    let tables = this.#policies.get(policy.name);
    if (tables?.algorithm !== policy.arithmetic) tables = this.#openTables(policy, tables);
    this.#recentPolicy = policy;
    this.#recent = tables;
    return tables;
  }

  /** A policy seen for the first time, or one whose algorithm has changed: that one starts afresh. */
  #openTables(policy: Policy, previous: PolicyTables | undefined): PolicyTables {
    if (previous !== undefined) {
      this.#keys -= previous.counters.count;
      previous.counters.retired = true;
      this.#tables = this.#tables.filter((table) => table !== previous.counters);
    }
    const tables = new PolicyTables(policy.name, policy.arithmetic);
    this.#policies.set(policy.name, tables);
    this.#tables.push(tables.counters);
    return tables;
  }
}

function blocked(decision: Decision, blockedMs: number): Decision {
  return {
    ...decision,
    allowed: false,
    remaining: 0,
    retryAfterMs: Math.max(decision.retryAfterMs, blockedMs),
    resetAfterMs: Math.max(decision.resetAfterMs, blockedMs),
    delayMs: 0,
    receipt: undefined,
  };
}
