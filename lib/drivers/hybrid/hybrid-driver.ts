import type { Receipt } from '../../core/algorithm.js';
import type { Clock } from '../../core/clock.js';
import type { Charge, Counter, Decision, Driver, DriverStatus, MaybePromise } from '../../core/driver.js';
import {
  completeHybrid,
  HYBRID_OPTIONS,
  type CompletedHybridOptions,
  type HybridOptions,
} from '../../core/engine-options.js';
import { RateLimitError } from '../../core/errors.js';
import type { BreakerChangeEvent, DriverErrorEvent, EvictionEvent } from '../../core/observer.js';
import type { RedisSource } from '../../core/redis-source.js';
import type { DiagnosticSink } from '../../core/diagnostics.js';
import { decideInParts } from '../group-in-parts.js';
import type { DecidedGroup } from '../redis/operations.js';
import { RedisDriver } from '../redis/redis-driver.js';
import { isRedisUnavailable } from '../redis/redis-errors.js';
import { startBackgroundTimer } from './background-timer.js';
import { CircuitBreaker, COOL_OFF_JITTER } from './circuit-breaker.js';
import { DataSets } from './data-sets.js';
import { DeferredChanges } from './deferred-changes.js';
import type { FleetPlace } from './fair-share.js';
import { Fleet, MISSED_BEATS, type Beat } from './fleet.js';
import { FleetUsage } from './fleet-usage.js';
import { FallbackReceipt, LocalFallback } from './local-fallback.js';
import { OutageLedger } from './outage-ledger.js';
import { RedisCall } from './redis-call.js';
import { Regrowth } from './regrowth.js';
import { ServerClock } from './server-clock.js';
import { Settlement } from './settlement.js';
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
  readonly onError?: (event: DriverErrorEvent) => void;
  /** Told what an operator should know. */
  readonly report?: DiagnosticSink;
}

const DEFAULT_PREFIX = 'distlimit';
const DEFAULT_MAX_KEYS = 1_000_000;
/** The longest that start-up waits for Redis, in milliseconds. */
const START_UP_MS = 2_000;
/** A new instance tells and asks more often at first: who else is there is all it knows should Redis go away now. */
const FIRST_BEATS_MS = [250, 500, 1_000];
/** The shortest time between two suspicions that Redis has lost its data, in milliseconds. */
const SUSPICION_PAUSE_MS = 100;
/** By how much a pause between beats may be shorter. */
const BEAT_JITTER = 0.1;

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
  readonly #clock: Clock;
  readonly #usage: FleetUsage;
  readonly #ledger: OutageLedger;
  readonly #local: LocalFallback;
  readonly #breaker: CircuitBreaker;
  readonly #fleet: Fleet;
  readonly #dataSets: DataSets;
  readonly #settlement: Settlement;
  readonly #deferred = new DeferredChanges();
  /** Frozen while Redis is away. */
  #place: FleetPlace;
  #regrowth: Regrowth | undefined;
  /** When the breaker opened, in the store's milliseconds. */
  #lostAt = 0;
  #beats = 0;
  #suspectAgainAt = 0;
  #cancelBeat = () => {};
  #isStarting = true;
  #fatal: Error | undefined;
  #lastError: Error | undefined;
  #closed = false;

  /** @throws RateLimitConfigError for the first option that is wrong */
  constructor(options: HybridDriverOptions) {
    const { redis, prefix = DEFAULT_PREFIX, maxKeys = DEFAULT_MAX_KEYS, clock } = options;
    this.#options = options;
    const settings = (this.#settings = completeHybrid(hybridOptionsOf(options)));
    this.#place = { size: settings.expectedInstances ?? 1, rank: 0 };
    const serverClock = new ServerClock();
    this.#clock = clock ?? serverClock;
    this.#redis = new RedisDriver({
      redis,
      prefix,
      ...(clock !== undefined && { clock }),
      timeoutMs: settings.timeoutMs,
      reconnectGraceMs: 0,
      onDecided: (charges, decided) => this.#learn(charges, decided),
    });
    const { connection, storage } = this.#redis;
    const call = new RedisCall({ connection, timeoutMs: settings.timeoutMs, serverClock, clock });
    this.#fleet = new Fleet({
      call,
      key: storage.own(`fleet:${settings.group ?? prefix}`),
      heartbeatMs: settings.heartbeatMs,
    });
    this.#dataSets = new DataSets(connection, storage, call);
    this.#usage = new FleetUsage(maxKeys);
    this.#ledger = new OutageLedger(maxKeys);
    this.#local = new LocalFallback({
      clock: this.#clock,
      usage: this.#usage,
      ledger: this.#ledger,
      minShare: settings.minShare,
      maxKeys,
      sweepIntervalMs: options.sweepIntervalMs,
      onEviction: options.onEviction,
      place: () => (this.#isFair ? this.#place : ALONE),
    });
    this.#breaker = new CircuitBreaker({
      failureThreshold: settings.failureThreshold,
      coolOffMs: settings.coolOffMs,
      clock: this.#clock,
      probe: () => this.#probe(),
      onChange: (change) => this.#breakerChanged(change),
    });
    this.#settlement = new Settlement({
      redis: this.#redis,
      usage: this.#usage,
      ledger: this.#ledger,
      clock: this.#clock,
      dataSet: () => this.#dataSets.generation,
      isReachable: () => this.#breaker.letsThrough && !this.#closed,
      failed: (error) => this.#failed(error),
      onSettled: () => this.#checkRecovered(),
    });
    connection.onState((state) => {
      if (state === 'lost') this.#breaker.trip(connectionLost(connection.lastError));
    });
    this.started = this.#start();
    this.started.catch(() => {});
  }

  decide(group: readonly Charge[]): MaybePromise<readonly Decision[]> {
    this.#requireOpen();
    if (this.#isStarting) return this.#afterStart(() => this.decide(group));
    if (!this.#breaker.letsThrough) return withoutStore(group, this.#local, this.#lastError);
    if (this.#isFair && this.#ledger.size > 0) {
      const local = new Set(group.filter((charge) => this.#isLocal(charge)));
      if (local.size > 0) return this.#decideWithLocals(group, local);
    }
    return this.#orWithoutStore(group, () => this.#redis.decide(this.#forRedis(group)));
  }

  peek(counter: Counter): MaybePromise<Decision> {
    this.#requireOpen();
    if (this.#isStarting) return this.#afterStart(() => this.peek(counter));
    if (!this.#breaker.letsThrough || this.#isLocal(counter)) return this.#local.peek(counter);
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
      breaker: this.#breaker.state.name,
      fleetSize: this.#place.size,
      keys: this.#local.keys + this.#usage.size,
      evictions: this.#local.evictions,
      lastError: this.#lastError?.message ?? this.#redis.status().lastError,
    };
  }

  /** Says farewell to the other instances, and frees what was opened here. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelBeat();
    this.#settlement.stop();
    this.#breaker.stop();
    if (this.#redis.connection.state === 'ready') await this.#fleet.leave().catch(() => {});
    await this.#redis.close();
    await this.#local.close();
    this.#usage.clear();
    this.#ledger.clear();
  }

  get #isFair(): boolean {
    return this.#settings.fallback === 'fair-share';
  }

  async #start(): Promise<void> {
    try {
      await withinStartUp(this.#redis.started);
      if (this.#redis.connection.state === 'ready') this.#join(await this.#askFleet());
      else this.#startWithoutRedis(connectionLost(this.#redis.connection.lastError));
    } catch (error) {
      if (!isRedisUnavailable(error)) {
        this.#fatal = error as Error;
        throw error;
      }
      this.#startWithoutRedis(error);
    } finally {
      this.#isStarting = false;
    }
  }

  #startWithoutRedis(error: unknown): void {
    if (this.#closed) return;
    this.#breaker.trip(error);
    if (this.#settings.expectedInstances !== undefined || !this.#isFair) return;
    this.#options.report?.({
      code: 'RL_FLEET_UNKNOWN',
      message:
        'Redis could not be reached at start-up, and hybrid.expectedInstances is not set: until Redis is there this instance takes itself for the only one, and admits every limit in full',
    });
  }

  /** Runs `work` when start-up is over, or without Redis when the deadline has passed before. */
  async #afterStart<T>(work: () => MaybePromise<T>): Promise<T> {
    await withinMs(this.started, this.#settings.timeoutMs).catch(() => {});
    this.#requireOpen();
    if (this.#isStarting) {
      this.#isStarting = false;
      this.#breaker.trip(connectionLost(this.#redis.connection.lastError));
    }
    return work();
  }

  #requireOpen(): void {
    if (this.#closed) throw new RateLimitError('RL_CLOSED', 'the limiter was closed');
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  // Decisions

  #isLocal(counter: Counter): boolean {
    return this.#ledger.isLocal(counter, this.#now());
  }

  /** What is asked of Redis: while instances come back, by a part of the quota. */
  #forRedis(group: readonly Charge[]): readonly Charge[] {
    if (this.#settlement.reminds) for (const charge of group) this.#settlement.remind(charge);
    const regrowth = this.#regrowth;
    return regrowth === undefined
      ? group
      : group.map((charge) => ({ ...charge, quota: regrowth.scale(charge.quota) }));
  }

  /** Some of the group were served locally in their window, and stay so until it ends. */
  #decideWithLocals(group: readonly Charge[], local: ReadonlySet<Charge>): MaybePromise<readonly Decision[]> {
    const decideLocally = (part: readonly Charge[]) => {
      this.#settlement.startSoon();
      return this.#local.decide(part);
    };
    if (local.size === group.length) return decideLocally(group);
    return this.#orWithoutStore(group, () =>
      decideInParts(group, (charge) => local.has(charge), {
        decide: async (part) => {
          const decisions = local.has(part[0]!)
            ? decideLocally(part)
            : await this.#redis.decide(this.#forRedis(part));
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
      this.#breaker.succeeded();
      return this.#regrowth === undefined ? decisions : decisions.map((d, i) => notForEver(d, group[i]!));
    } catch (error) {
      if (!this.#mayGoOnWithout(error)) throw error;
      return withoutStore(group, this.#local, error);
    }
  }

  async #peekInRedis(counter: Counter): Promise<Decision> {
    try {
      const regrowth = this.#regrowth;
      if (this.#settlement.reminds) this.#settlement.remind(counter);
      const asked = regrowth === undefined ? counter : { ...counter, quota: regrowth.scale(counter.quota) };
      return await this.#redis.peek(asked);
    } catch (error) {
      if (!this.#mayGoOnWithout(error)) throw error;
      return this.#local.peek(counter);
    }
  }

  /** Whether a failure of Redis is one that the caller need not hear of. */
  #mayGoOnWithout(error: unknown): boolean {
    if (this.#failed(error)) return true;
    // Wrong input and a closed limiter are the caller's; what is wrong with a key or the script is not.
    if (error instanceof RateLimitError && error.code !== 'RL_BROKEN_KEY') return false;
    this.#options.onError?.({ driver: this.name, error });
    return true;
  }

  /** Notes a failure. True where it says that Redis is unavailable. */
  #failed(error: unknown): boolean {
    if (this.#closed) return false;
    this.#lastError = asError(error);
    if (!isRedisUnavailable(error)) return false;
    this.#breaker.failed(error);
    return true;
  }

  #learn(charges: readonly Charge[], { decisions, denials, now }: DecidedGroup): void {
    if (!this.#isFair) return;
    const dataSet = this.#dataSets.generation;
    let isSuspicious = false;
    for (const [i, charge] of charges.entries()) {
      const blockedMs = denials[i]?.blockedMs ?? 0;
      // Of a blocked subject nothing is left, whatever it has used.
      if (blockedMs > 0) this.#local.block(charge, blockedMs);
      else if (this.#usage.learn(charge, decisions[i]!.remaining, now, dataSet)) isSuspicious = true;
    }
    if (isSuspicious && !this.#settlement.reminds) this.#suspectLoss();
  }

  /** Does not wait for the next beat to find that Redis has lost its data, but does not ask all the time either. */
  #suspectLoss(): void {
    const now = performance.now();
    if (now < this.#suspectAgainAt) return;
    this.#suspectAgainAt = now + SUSPICION_PAUSE_MS;
    const generation = this.#dataSets.generation;
    this.#dataSets.check().then(
      () => generation !== this.#dataSets.generation && this.#settlement.start(),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Has something changed in Redis: now, or when it is back. */
  async #change(change: () => Promise<void>): Promise<void> {
    if (this.#isStarting) return this.#afterStart(() => this.#change(change));
    if (this.#breaker.letsThrough) {
      try {
        return await change();
      } catch (error) {
        if (!this.#failed(error)) throw error;
      }
    }
    this.#deferred.add(change);
  }

  // Outage and return

  #breakerChanged(change: Omit<BreakerChangeEvent, 'driver'>): void {
    if (change.error !== undefined) this.#lastError = asError(change.error);
    if (change.current === 'open') {
      if (change.previous !== 'half-open') this.#lostAt = this.#now();
      this.#cancelBeat();
    }
    this.#options.onBreakerChange?.({ driver: this.name, ...change });
    if (change.current === 'recovering') this.#recover();
  }

  /** Asks whether Redis is back, what it still knows, and who else is back. */
  async #probe(): Promise<void> {
    try {
      const beat = await this.#askFleet();
      if (!this.#closed) this.#returned(beat);
    } catch (error) {
      this.#lastError = asError(error);
      this.#redis.connection.renew();
      throw error;
    }
  }

  async #askFleet(): Promise<Beat> {
    const [beat] = await Promise.all([this.#fleet.beat(this.#lostAt), this.#dataSets.check()]);
    return beat;
  }

  #join({ place }: Beat): void {
    if (this.#closed) return;
    this.#place = place;
    this.#beatLater();
  }

  #returned({ place, back }: Beat): void {
    const { coolOffMs, heartbeatMs, minShare } = this.#settings;
    if (!this.#isFair) {
      this.#place = place;
      return;
    }
    const known = Math.max(this.#place.size, place.size);
    const until = this.#now() + coolOffMs * (1 + COOL_OFF_JITTER) + MISSED_BEATS * heartbeatMs;
    this.#regrowth = new Regrowth({ known, minShare, until });
    this.#heardOf({ place, back });
  }

  #heardOf({ place, back }: Beat): void {
    const regrowth = this.#regrowth;
    regrowth?.sees(back);
    if (regrowth !== undefined && !regrowth.isOver(this.#now())) return;
    this.#regrowth = undefined;
    this.#place = place;
  }

  #recover(): void {
    if (!this.#isFair) this.#ledger.clear();
    this.#beatLater();
    void this.#deferred.make((error) => !this.#failed(error)).then(() => this.#settlement.start());
  }

  #checkRecovered(): void {
    if (this.#regrowth !== undefined || !this.#settlement.isDone || this.#deferred.size > 0) return;
    this.#breaker.recovered('all instances are back, and Redis knows what was let through without it');
  }

  #beatLater(): void {
    this.#cancelBeat();
    if (this.#closed) return;
    const { heartbeatMs } = this.#settings;
    const pause = Math.min(FIRST_BEATS_MS[this.#beats++] ?? heartbeatMs, heartbeatMs);
    this.#cancelBeat = startBackgroundTimer(
      this.#options.clock,
      () => void this.#beat(),
      Math.ceil(pause * (1 - BEAT_JITTER * Math.random())),
    );
  }

  async #beat(): Promise<void> {
    if (this.#closed || !this.#breaker.letsThrough) return;
    try {
      const generation = this.#dataSets.generation;
      this.#heardOf(await this.#askFleet());
      if (generation !== this.#dataSets.generation) this.#settlement.start();
      this.#usage.sweep(this.#now());
      this.#ledger.sweep(this.#now());
      if (this.#breaker.state.name === 'recovering') this.#settlement.start();
    } catch (error) {
      this.#failed(error);
    }
    if (this.#breaker.letsThrough) this.#beatLater();
  }

  #now(): number {
    return Math.floor(this.#clock.now());
  }
}

/** The place of an instance that need not share. */
const ALONE: FleetPlace = { size: 1, rank: 0 };

function hybridOptionsOf(options: HybridDriverOptions): HybridOptions {
  return Object.fromEntries(
    HYBRID_OPTIONS.map((name) => [name, options[name]]).filter(([, value]) => value !== undefined),
  );
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('the store failed', { cause: error });
}

function connectionLost(cause: Error | undefined): RateLimitError {
  const why = cause === undefined ? '' : `: ${cause.message}`;
  return new RateLimitError(
    'RL_REDIS_NOT_READY',
    `there is no connection to Redis${why}`,
    cause && { cause },
  );
}

/** A part of a quota denies for ever what the whole quota would admit some time. */
function notForEver(decision: Decision, { policy, quota, cost }: Charge): Decision {
  const isForEver = decision.retryAfterMs === Infinity && cost <= policy.arithmetic.capacity(quota);
  return isForEver ? { ...decision, retryAfterMs: quota.windowMs } : decision;
}

function isSameWindow({ quota: { windowMs } }: Counter, one: number, other: number): boolean {
  return Math.floor(one / windowMs) === Math.floor(other / windowMs);
}

function withinStartUp(started: Promise<void>): Promise<void> {
  return withinMs(started, START_UP_MS);
}

/** Settles as `work` does, or resolves when the time has passed. */
async function withinMs(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([work, passed]);
  } finally {
    clearTimeout(timer);
  }
}
