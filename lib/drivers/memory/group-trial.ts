import {
  ALLOWED,
  NEVER,
  OUTCOME_SLOTS,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Receipt,
} from '../../core/algorithm.js';
import { blockedFor } from '../../core/blocked-decision.js';
import type { Charge, Counter, Decision } from '../../core/driver.js';
import type { BlockList } from './block-list.js';
import type { CounterStore } from './counter-store.js';
import { decisionOf } from './decision.js';
import { EntryRing } from './entry-ring.js';
import type { SubjectTable } from './subject-table.js';

/** One charge of a group on trial: what it would find, and what it would leave. */
interface Trial {
  readonly counter: Counter;
  readonly cost: number;
  /** What it and those before it in the group take of one and the same counter. */
  readonly total: number;
  /** Where its registers stand in the scratch; charges of one counter share them. */
  readonly offset: number;
  readonly log: EntryRing | undefined;
  readonly blockedMs: number;
  /** What the algorithm would take, the block apart; `undefined` where it denied. */
  readonly receipt: Receipt | undefined;
  readonly decision: Decision;
}

/** Decides what can't be decided in place: several charges together, and looks that must leave no trace. */
export class GroupTrial {
  readonly #store: CounterStore;
  readonly #blocks: BlockList;
  readonly #outcome = new Float64Array(OUTCOME_SLOTS);
  #scratch = new Float64Array(64);
  /** How much of the scratch the group at hand has taken. */
  #reserved = 0;

  constructor(store: CounterStore, blocks: BlockList) {
    this.#store = store;
    this.#blocks = blocks;
  }

  /** Takes all charges, or none. */
  decide(group: readonly Charge[], now: number, serial: number): readonly Decision[] {
    const trials: Trial[] = [];
    this.#reserved = 0;
    for (const charge of group) this.#try(charge, charge.cost, now, serial, trials);
    const passes = trials.every(
      ({ decision, counter }) => decision.allowed || counter.policy.mode === 'shadow',
    );
    if (passes) {
      this.#commitAll(trials, now);
      return trials.map((trial) => (isHeldByBlock(trial) ? this.#measured(trial, now) : trial.decision));
    }
    for (const trial of trials.toReversed()) this.#undo(trial, now);
    for (const trial of trials) this.#keepCorrection(trial, trials, now);
    return trials.map((trial) => this.#denied(trial, now));
  }

  /** What a charge would be answered; what is left is without it. */
  look(counter: Counter, cost: number, now: number): Decision {
    const trial = this.#tryAlone(counter, cost, now);
    return trial.receipt === undefined ? trial.decision : this.#measured(trial, now);
  }

  /** Whether a charge would be admitted, be it after a wait and the block apart. */
  hasPlace(counter: Counter, cost: number, now: number): boolean {
    return this.#tryAlone(counter, cost, now).receipt !== undefined;
  }

  #tryAlone(counter: Counter, cost: number, now: number): Trial {
    const trials: Trial[] = [];
    this.#reserved = 0;
    this.#try(counter, cost, now, 0, trials);
    const trial = trials[0]!;
    this.#undo(trial, now);
    return trial;
  }

  /** Steps on a copy of the registers, or on the log itself, to be taken back by `#undo`. */
  #try(counter: Counter, cost: number, now: number, serial: number, trials: Trial[]): void {
    const { policy, quota, subject } = counter;
    // Where the group makes the tables, this charge is the first of their algorithm.
    const { algorithm, counters } = this.#store.tablesOf(policy, serial - 1);
    const earlier = trials.findLast((t) => isSame(t.counter, counter));
    const offset = earlier?.offset ?? this.#reserve(counters.width);
    let log = earlier?.log;
    if (earlier === undefined) log = this.#load(counters, subject, now, offset);
    if (algorithm.shape === 'log') algorithm.step((log ??= new EntryRing()), quota, now, cost, this.#outcome);
    else algorithm.step(this.#scratch, offset, quota, now, cost, this.#outcome);
    const outcome = decisionOf(this.#outcome, quota, cost, serial);
    const blockedMs = this.#blocks.used ? this.#blocks.remainingMs(policy.name, subject, now) : 0;
    const decision = blockedMs > 0 ? blockedFor(outcome, blockedMs) : outcome;
    const total = cost + (earlier?.total ?? 0);
    trials.push({ counter, cost, total, offset, log, blockedMs, receipt: outcome.receipt, decision });
  }

  /** Takes a place in the scratch. */
  #reserve(width: number): number {
    const offset = this.#reserved;
    this.#reserved += width;
    if (this.#reserved > this.#scratch.length) {
      const grown = new Float64Array(2 * this.#reserved);
      grown.set(this.#scratch);
      this.#scratch = grown;
    }
    return offset;
  }

  /** Copies a counter's registers into the scratch, zeros where there are none; returns its log. */
  #load(counters: SubjectTable, subject: string, now: number, offset: number): EntryRing | undefined {
    const { width } = counters;
    this.#scratch.fill(0, offset, offset + width);
    const slot = this.#store.find(counters, subject);
    const { columns } = counters.shard;
    if (slot < 0 || columns.hasExpired(slot, now)) return undefined;
    const from = columns.registersAt(slot);
    for (let i = 0; i < width; i++) this.#scratch[offset + i] = columns.records[from + i]!;
    return columns.logs?.[slot];
  }

  #commitAll(trials: readonly Trial[], now: number): void {
    const charged = trials.filter(({ decision }) => decision.allowed);
    // All of it first: making room for one must not evict another of the group.
    this.#store.makeRoomFor(
      charged.length,
      () => new Set(charged.filter((t) => !this.#isThere(t)).map(nameOf)).size,
    );
    for (const trial of trials) {
      if (trial.decision.allowed) this.#commit(trial);
      else this.#undo(trial, now);
    }
  }

  #isThere({ counter }: Trial): boolean {
    return this.#store.find(this.#store.tablesOf(counter.policy, 0).counters, counter.subject) >= 0;
  }

  #commit({ counter, offset, log, receipt }: Trial): void {
    const tables = this.#store.tablesOf(counter.policy, 0);
    const { counters } = tables;
    const idleMs = tables.idleMs(counter.quota);
    const { chargedAt } = receipt!;
    let slot = this.#store.find(counters, counter.subject);
    if (slot < 0) slot = this.#store.add(counters, counter.subject, chargedAt, idleMs, log);
    this.#save(counters, slot, offset);
    if (log !== undefined) counters.shard.columns.logs![slot] = log;
    counters.shard.keepFor(slot, chargedAt, idleMs);
  }

  #save({ shard, width }: SubjectTable, slot: number, offset: number): void {
    const { columns } = shard;
    const to = columns.registersAt(slot);
    for (let i = 0; i < width; i++) columns.records[to + i] = this.#scratch[offset + i]!;
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
    const alone = trials.every((other) => other.counter === counter || !isSame(other.counter, counter));
    if (receipt !== undefined || !alone) return;
    const { counters } = this.#store.tablesOf(counter.policy, 0);
    const slot = this.#store.find(counters, counter.subject);
    const { shard } = counters;
    if (slot < 0 || shard.columns.hasExpired(slot, now)) return;
    this.#save(counters, slot, offset);
    if (shard.expiry(slot) < now + decision.resetAfterMs) shard.keepFor(slot, now, decision.resetAfterMs);
  }

  /** Registers were stepped on a copy; only a log has to give back what it took. */
  #undo({ counter, cost, log, receipt }: Trial, now: number): void {
    if (log === undefined || receipt === undefined) return;
    const { arithmetic } = counter.policy;
    if (arithmetic.shape === 'log') arithmetic.refund(log, counter.quota, now, cost, receipt);
  }

  #denied(trial: Trial, now: number): Decision {
    const { counter, cost, total, blockedMs, decision } = trial;
    if (trial.receipt !== undefined) return this.#measured(trial, now);
    const { policy, subject } = counter;
    const retryAfterMs =
      total === cost ? decision.retryAfterMs : Math.max(this.#retryAfterAll(trial, now), blockedMs);
    const denial = { ...decision, retryAfterMs };
    if (policy.blockMs === 0 || policy.mode === 'shadow' || blockedMs > 0) return denial;
    this.#blocks.start(policy.name, subject, now, policy.blockMs);
    return blockedFor(denial, policy.blockMs);
  }

  /** When all that the group takes of one counter would be admitted: the state holds none of it. */
  #retryAfterAll({ counter, total, decision }: Trial, now: number): number {
    const { policy, quota, subject } = counter;
    const { algorithm, counters } = this.#store.tablesOf(policy, 0);
    if (total > algorithm.capacity(quota)) return NEVER;
    const log = this.#load(counters, subject, now, 0) ?? new EntryRing();
    if (algorithm.shape === 'log') {
      // More than is free: a denial, so the log stays as it is.
      algorithm.step(log, quota, now, total, this.#outcome);
    } else {
      algorithm.step(this.#scratch, 0, quota, now, total, this.#outcome);
    }
    return this.#outcome[ALLOWED] === 1 ? decision.retryAfterMs : this.#outcome[RETRY_AFTER]!;
  }

  /** What a trial that was taken back reports: what is left without it. */
  #measured({ counter, decision, blockedMs }: Trial, now: number): Decision {
    const { policy, quota, subject } = counter;
    const { algorithm, counters } = this.#store.tablesOf(policy, 0);
    const log = this.#load(counters, subject, now, 0);
    if (algorithm.shape === 'log') algorithm.step(log ?? new EntryRing(), quota, now, 0, this.#outcome);
    else algorithm.step(this.#scratch, 0, quota, now, 0, this.#outcome);
    const remaining = decision.allowed ? this.#outcome[REMAINING]! : 0;
    const resetAfterMs = Math.max(this.#outcome[RESET_AFTER]!, blockedMs);
    return { ...decision, remaining, resetAfterMs, receipt: undefined };
  }
}

/** Whether only a block keeps the charge out. */
function isHeldByBlock({ decision, receipt }: Trial): boolean {
  return !decision.allowed && receipt !== undefined;
}

function isSame(one: Counter, other: Counter): boolean {
  return one.policy.name === other.policy.name && one.subject === other.subject;
}

function nameOf({ counter }: Trial): string {
  return `${counter.policy.name}\n${counter.subject}`;
}
