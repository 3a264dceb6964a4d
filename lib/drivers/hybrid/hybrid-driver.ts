import type { Receipt } from '../../core/algorithm.js';
import type { Clock } from '../../core/clock.js';
import { defined } from '../../core/defined.js';
import type { DiagnosticSink } from '../../core/diagnostics.js';
import type { Charge, Counter, Decision, Driver, DriverStatus, MaybePromise } from '../../core/driver.js';
import {
  completeHybrid,
  HYBRID_OPTIONS,
  type CompletedHybridOptions,
  type HybridOptions,
} from '../../core/engine-options.js';
import { RateLimitError } from '../../core/errors.js';
import type {
  BreakerChangeEvent,
  DriverErrorEvent,
  EvictionEvent,
  ReconcileEvent,
} from '../../core/observer.js';
import type { RedisSource } from '../../core/redis-address.js';
import { DEFAULT_PREFIX } from '../../core/storage-key.js';
import { decideInParts } from '../group-in-parts.js';
import type { DecidedGroup } from '../redis/operations.js';
import { RedisDriver } from '../redis/redis-driver.js';
import type { FleetPlace } from './fair-share.js';
import { FleetUsage } from './fleet-usage.js';
import { FallbackReceipt, LocalFallback } from './local-fallback.js';
import { OutageLedger } from './outage-ledger.js';
import { Reconciliation } from './reconciliation.js';
import { RedisWatch } from './redis-watch.js';
import { StartUp } from './start-up.js';
import { withoutStore } from './without-store.js';

export interface HybridDriverOptions extends HybridOptions {
  readonly redis: RedisSource;
  /** What every key begins with, without braces; default `distlimit`. */
  readonly prefix?: string;
  /** The most counters held in this process for outages; default 1,000,000. */
  readonly maxKeys?: number;
  readonly sweepIntervalMs?: number;
  /** Rules every decision in place of Redis' own time. For tests. */
  readonly clock?: Clock;
  readonly onBreakerChange?: (event: BreakerChangeEvent) => void;
  readonly onEviction?: (event: EvictionEvent) => void;
  readonly onReconcile?: (event: ReconcileEvent) => void;
  readonly onError?: (event: DriverErrorEvent) => void;
  /** Told what an operator should know. */
  readonly report?: DiagnosticSink;
}

const DEFAULT_MAX_KEYS = 1_000_000;

/**
 * Counters in Redis as long as Redis answers, and else in this process: then each instance lets through its own fair
 * share, and Redis is told when it is back.
 */
export class HybridDriver implements Driver {
  readonly name = 'hybrid';
  /** Settles when start-up is over, with Redis or without it; rejects where it can never work. */
  readonly started: Promise<void>;
  readonly #options: HybridDriverOptions;
  readonly #settings: CompletedHybridOptions;
  readonly #redis: RedisDriver;
  readonly #usage: FleetUsage;
  readonly #ledger: OutageLedger;
  readonly #watch: RedisWatch;
  readonly #local: LocalFallback;
  readonly #startUp: StartUp;

  /** @throws RateLimitConfigError for the first option that is wrong */
  constructor(options: HybridDriverOptions) {
    const { redis: source, prefix = DEFAULT_PREFIX, maxKeys = DEFAULT_MAX_KEYS, clock } = options;
    this.#options = options;
    const settings = (this.#settings = completeHybrid(hybridOptionsOf(options)));
    const redis = (this.#redis = new RedisDriver({
      redis: source,
      prefix,
      ...defined({ clock }),
      timeoutMs: settings.timeoutMs,
      reconnectGraceMs: 0,
      onDecided: (charges, decided) => this.#learn(charges, decided),
    }));
    const usage = (this.#usage = new FleetUsage(maxKeys));
    const reconciliation = new Reconciliation((told) =>
      options.onReconcile?.({ driver: this.name, ...told }),
    );
    const ledger = (this.#ledger = new OutageLedger(maxKeys, (cost) => reconciliation.dropped(cost)));
    const watch = (this.#watch = new RedisWatch({
      redis,
      group: settings.group ?? prefix,
      settings,
      clock,
      usage,
      ledger,
      reconciliation,
      onBreakerChange: (change) => options.onBreakerChange?.({ driver: this.name, ...change }),
    }));
    this.#local = new LocalFallback({
      clock: watch.clock,
      usage,
      ledger,
      minShare: settings.minShare,
      maxKeys,
      sweepIntervalMs: options.sweepIntervalMs,
      onEviction: options.onEviction,
      place: () => (this.#isFair ? watch.place : ALONE),
    });
    this.#startUp = new StartUp({ redis, watch, settings, report: options.report });
    this.started = this.#startUp.done;
  }

  decide(group: readonly Charge[]): MaybePromise<readonly Decision[]> {
    this.#requireOpen();
    if (!this.#startUp.isOver) return this.#afterStart(() => this.decide(group));
    if (!this.#watch.letsThrough) return withoutStore(group, this.#local, this.#watch.lastError);
    if (this.#isFair && this.#ledger.size > 0) {
      const local = new Set(group.filter((charge) => this.#isLocal(charge)));
      if (local.size > 0) return this.#decideWithLocals(group, local);
    }
    return this.#orWithoutStore(group, () => this.#redis.decide(this.#watch.forRedis(group)));
  }

  peek(counter: Counter): MaybePromise<Decision> {
    this.#requireOpen();
    if (!this.#startUp.isOver) return this.#afterStart(() => this.peek(counter));
    if (!this.#watch.letsThrough || this.#isLocal(counter)) return this.#local.peek(counter);
    return this.#peekInRedis(counter);
  }

  async refund(counter: Counter, receipt: Receipt): Promise<void> {
    this.#requireOpen();
    if (!(receipt instanceof FallbackReceipt)) {
      this.#usage.giveBack(counter, receipt.cost, this.#now());
      return this.#change(() => this.#redis.refund(counter, receipt));
    }
    const isPaid = !this.#local.refund(counter, receipt);
    // Redis was charged with it later, as a part of a sum: only of the window that it was let through in.
    if (isPaid && this.#isFair && isSameWindow(counter, receipt.chargedAt, this.#now()))
      await this.#change(() => this.#redis.giveBack(counter, receipt.cost));
  }

  async giveBack(counter: Counter, cost: number): Promise<void> {
    this.#requireOpen();
    this.#local.giveBack(counter, cost);
    this.#usage.giveBack(counter, cost, this.#now());
    await this.#change(() => this.#redis.giveBack(counter, cost));
  }

  async reset(counter: Counter): Promise<void> {
    this.#requireOpen();
    this.#local.reset(counter);
    this.#usage.forget(counter);
    await this.#change(() => this.#redis.reset(counter));
  }

  async block(counter: Counter, durationMs: number): Promise<void> {
    this.#requireOpen();
    this.#local.block(counter, durationMs);
    const until = this.#now() + durationMs;
    await this.#change(async () => {
      const leftMs = until - this.#now();
      if (leftMs > 0) await this.#redis.block(counter, leftMs);
    });
  }

  async unblock(counter: Counter): Promise<void> {
    this.#requireOpen();
    this.#local.unblock(counter);
    await this.#change(() => this.#redis.unblock(counter));
  }

  status(): DriverStatus {
    return {
      driver: this.name,
      breaker: this.#watch.state,
      fleetSize: this.#watch.place.size,
      keys: this.#local.keys + this.#usage.size,
      evictions: this.#local.evictions,
      lastError: this.#watch.lastError?.message ?? this.#redis.status().lastError,
    };
  }

  /** Says farewell to the other instances, and frees what was opened here. */
  async close(): Promise<void> {
    if (this.#watch.isClosed) return;
    await this.#watch.close();
    await this.#redis.close();
    await this.#local.close();
    this.#usage.clear();
    this.#ledger.clear();
  }

  get #isFair(): boolean {
    return this.#settings.fallback === 'fair-share';
  }

  #requireOpen(): void {
    if (this.#watch.isClosed) throw new RateLimitError('RL_CLOSED', 'the limiter was closed');
    if (this.#startUp.fatal !== undefined) throw this.#startUp.fatal;
  }

  async #afterStart<T>(work: () => MaybePromise<T>): Promise<T> {
    await this.#startUp.wait();
    this.#requireOpen();
    return work();
  }

  #isLocal(counter: Counter): boolean {
    return this.#ledger.isLocal(counter, this.#now());
  }

  /** Some of the group were served locally in their window, and stay so until it ends. */
  #decideWithLocals(group: readonly Charge[], local: ReadonlySet<Charge>): MaybePromise<readonly Decision[]> {
    const decideLocally = (part: readonly Charge[]) => {
      this.#watch.settleSoon();
      return this.#local.decide(part);
    };
    if (local.size === group.length) return decideLocally(group);
    return this.#orWithoutStore(group, () =>
      decideInParts(group, (charge) => local.has(charge), {
        decide: async (part) => {
          const decisions = local.has(part[0]!)
            ? decideLocally(part)
            : await this.#redis.decide(this.#watch.forRedis(part));
          const passed = decisions.every(({ allowed }, i) => allowed || part[i]!.policy.mode === 'shadow');
          return { passed, decisions };
        },
        refund: (charge, receipt) => this.refund(charge, receipt),
        peek: (charge) => (local.has(charge) ? this.#local.peek(charge) : this.#redis.peek(charge)),
      }),
    );
  }

  async #orWithoutStore(
    group: readonly Charge[],
    decide: () => Promise<readonly Decision[]>,
  ): Promise<readonly Decision[]> {
    try {
      const decisions = await decide();
      this.#watch.succeeded();
      return this.#watch.isPartial ? decisions.map((d, i) => notForEver(d, group[i]!)) : decisions;
    } catch (error) {
      if (!this.#mayGoOnWithout(error)) throw error;
      return withoutStore(group, this.#local, error);
    }
  }

  async #peekInRedis(counter: Counter): Promise<Decision> {
    try {
      return await this.#redis.peek(this.#watch.forRedis([counter])[0]!);
    } catch (error) {
      if (!this.#mayGoOnWithout(error)) throw error;
      return this.#local.peek(counter);
    }
  }

  /** Whether a failure of Redis is one that the caller need not hear of. */
  #mayGoOnWithout(error: unknown): boolean {
    if (this.#watch.failed(error)) return true;
    // Wrong input and a closed limiter are the caller's; what is wrong with a key or the script is not.
    if (error instanceof RateLimitError && error.code !== 'RL_BROKEN_KEY') return false;
    this.#options.onError?.({ driver: this.name, error });
    return true;
  }

  #learn(charges: readonly Charge[], { decisions, denials, now }: DecidedGroup): void {
    if (!this.#isFair) return;
    const { dataSet } = this.#watch;
    let isSuspicious = false;
    for (const [i, charge] of charges.entries()) {
      const blockedMs = denials[i]?.blockedMs ?? 0;
      // Of a blocked subject nothing is left, whatever it has used.
      if (blockedMs > 0) this.#local.block(charge, blockedMs);
      else if (this.#usage.learn(charge, decisions[i]!.remaining, now, dataSet)) isSuspicious = true;
    }
    if (isSuspicious) this.#watch.suspectLoss();
  }

  /** Has something changed in Redis: now, or when it is back. */
  async #change(change: () => Promise<void>): Promise<void> {
    if (!this.#startUp.isOver) return this.#afterStart(() => this.#watch.change(change));
    await this.#watch.change(change);
  }

  #now(): number {
    return Math.floor(this.#watch.clock.now());
  }
}

/** The place of an instance that need not share. */
const ALONE: FleetPlace = { size: 1, rank: 0 };

function hybridOptionsOf(options: HybridDriverOptions): HybridOptions {
  return defined(Object.fromEntries(HYBRID_OPTIONS.map((name) => [name, options[name]])));
}

/** A part of a quota denies for ever what the whole quota would admit some time. */
function notForEver(decision: Decision, { policy, quota, cost }: Charge): Decision {
  const isForEver = decision.retryAfterMs === Infinity && cost <= policy.arithmetic.capacity(quota);
  return isForEver ? { ...decision, retryAfterMs: quota.windowMs } : decision;
}

function isSameWindow({ quota: { windowMs } }: Counter, one: number, other: number): boolean {
  return Math.floor(one / windowMs) === Math.floor(other / windowMs);
}
