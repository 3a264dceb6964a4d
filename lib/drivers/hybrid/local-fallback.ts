import type { Quota, Receipt } from '../../core/algorithm.js';
import type { Clock } from '../../core/clock.js';
import { defined } from '../../core/defined.js';
import type { Charge, Counter, Decision } from '../../core/driver.js';
import type { EvictionEvent } from '../../core/observer.js';
import { MemoryDriver } from '../memory/memory-driver.js';
import { fairShare, QuotaShares, type FleetPlace } from './fair-share.js';
import type { FleetUsage } from './fleet-usage.js';
import type { OutageLedger } from './outage-ledger.js';

/** What gives a charge back that was taken here and not in Redis. */
export class FallbackReceipt implements Receipt {
  readonly cost: number;
  readonly limit: number;
  readonly windowMs: number;
  readonly chargedAt: number;
  readonly mark: number;

  constructor(
    /** As the local counters know it, by the local share of the quota. */
    readonly local: Receipt,
    /** The number of its entry in the ledger. */
    readonly admission: number,
  ) {
    this.cost = local.cost;
    this.limit = local.limit;
    this.windowMs = local.windowMs;
    this.chargedAt = local.chargedAt;
    this.mark = local.mark;
  }
}

export interface LocalFallbackOptions {
  readonly clock: Clock;
  readonly usage: FleetUsage;
  readonly ledger: OutageLedger;
  readonly minShare: number;
  readonly maxKeys: number;
  readonly sweepIntervalMs?: number | undefined;
  readonly onEviction?: ((event: EvictionEvent) => void) | undefined;
  /** This instance's place, as it was when Redis was last reached. */
  readonly place: () => FleetPlace;
}

/**
 * Decides without Redis: each subject by this instance's fair share of its quota, beginning with its share of what the
 * fleet had left when Redis was last heard of.
 */
export class LocalFallback {
  readonly #options: LocalFallbackOptions;
  readonly #counters: MemoryDriver;
  readonly #shares: QuotaShares;

  constructor(options: LocalFallbackOptions) {
    this.#options = options;
    const { clock, maxKeys, sweepIntervalMs, onEviction } = options;
    this.#counters = new MemoryDriver({ clock, maxKeys, ...defined({ sweepIntervalMs, onEviction }) });
    this.#shares = new QuotaShares(options.minShare);
  }

  get keys(): number {
    return this.#counters.status().keys;
  }

  get evictions(): number {
    return this.#counters.status().evictions;
  }

  decide(group: readonly Charge[]): readonly Decision[] {
    const { ledger } = this.#options;
    const now = this.#now();
    const local = group.map((charge) => this.#localCharge(charge, now));
    return this.#counters.decide(local).map((decision, i) => {
      const charge = group[i]!;
      const { receipt } = decision;
      return {
        ...asFallback(decision, charge, charge.cost),
        receipt: receipt && new FallbackReceipt(receipt, ledger.book(charge, receipt.cost, now)),
      };
    });
  }

  peek(counter: Counter): Decision {
    const local = this.#localCharge({ ...counter, cost: 1 }, this.#now());
    return asFallback(this.#counters.peek(local), counter, 1);
  }

  /** @returns false where what was taken has been charged to Redis since, and has to be given back there as well */
  refund(counter: Counter, { local, admission }: FallbackReceipt): boolean {
    this.#counters.refund(this.#localCounter(counter), local);
    return this.#options.ledger.cancel(counter, admission, local.cost, this.#now());
  }

  giveBack(counter: Counter, cost: number): void {
    this.#counters.giveBack(this.#localCounter(counter), cost);
  }

  reset(counter: Counter): void {
    this.#options.ledger.forget(counter);
    this.#counters.reset(counter);
  }

  block(counter: Counter, durationMs: number): void {
    this.#counters.block(counter, durationMs);
  }

  unblock(counter: Counter): void {
    this.#counters.unblock(counter);
  }

  close(): Promise<void> {
    return this.#counters.close();
  }

  /** The charge by the local share. Where an outage meets the subject for the first time in its window, warmed up. */
  #localCharge(charge: Charge, now: number): Charge {
    const local = { ...charge, quota: this.#share(charge) };
    if (!this.#options.ledger.isLocal(charge, now)) this.#warmUp(charge, local, now);
    return local;
  }

  #localCounter(counter: Counter): Counter {
    return { ...counter, quota: this.#share(counter) };
  }

  #share(counter: Counter): Quota {
    return this.#shares.of(counter, this.#options.place());
  }

  /** Takes what the share of what was left is less than the share of the whole: that has been used elsewhere. */
  #warmUp(counter: Counter, local: Charge, now: number): void {
    const known = this.#options.usage.find(counter);
    if (known === undefined) return;
    const left = fairShare(
      known.tally.remaining(now),
      this.#options.place(),
      counter.subject,
      this.#options.minShare,
    );
    const policy = { ...counter.policy, blockMs: 0, mode: 'enforce' as const };
    const quota = { ...local.quota, maxDelayMs: Infinity };
    const bare = { policy, quota, subject: counter.subject };
    const excess = this.#unblockedRemaining(bare) - left;
    if (excess > 0) this.#counters.decide([{ ...bare, cost: excess }]);
  }

  #unblockedRemaining(counter: Counter): number {
    return this.#counters.peek(counter).remaining;
  }

  #now(): number {
    return Math.floor(this.#options.clock.now());
  }
}

/**
 * A local decision as callers see it. What the whole quota would admit some time is not refused for ever because this
 * instance's share is smaller.
 */
function asFallback(decision: Decision, { policy, quota }: Counter, cost: number): Decision {
  const forever = decision.retryAfterMs === Infinity && cost <= policy.arithmetic.capacity(quota);
  return {
    ...decision,
    retryAfterMs: forever ? quota.windowMs : decision.retryAfterMs,
    servedBy: 'fallback',
  };
}
