import type { Clock } from '../../core/clock.js';
import type { Counter } from '../../core/driver.js';
import type { CompletedHybridOptions } from '../../core/engine-options.js';
import { RateLimitError } from '../../core/errors.js';
import type { BreakerChangeEvent } from '../../core/observer.js';
import type { RedisDriver } from '../redis/redis-driver.js';
import { isRedisUnavailable } from '../redis/redis-errors.js';
import { startBackgroundTimer } from '../../core/background-timer.js';
import { CircuitBreaker, COOL_OFF_JITTER, type BreakerState } from './circuit-breaker.js';
import { DataSets } from './data-sets.js';
import { DeferredChanges } from './deferred-changes.js';
import type { FleetPlace } from './fair-share.js';
import { Fleet, MISSED_BEATS, type Beat } from './fleet.js';
import type { FleetUsage } from './fleet-usage.js';
import type { OutageLedger } from './outage-ledger.js';
import type { Reconciliation } from './reconciliation.js';
import { RedisCall } from './redis-call.js';
import { Regrowth } from './regrowth.js';
import { ServerClock } from './server-clock.js';
import { Settlement } from './settlement.js';

/** A new instance tells and asks more often at first: who else is there is all it knows should Redis go away now. */
const FIRST_BEATS_MS = [250, 500, 1_000];
/** The shortest time between two suspicions that Redis has lost its data, in milliseconds. */
const SUSPICION_PAUSE_MS = 100;
/** By how much a pause between beats may be shorter. */
const BEAT_JITTER = 0.1;

export interface RedisWatchOptions {
  readonly redis: RedisDriver;
  /** Of the instances that share the limits. */
  readonly group: string;
  readonly settings: CompletedHybridOptions;
  /** Rules in place of Redis' own time, and has the timers. */
  readonly clock: Clock | undefined;
  readonly usage: FleetUsage;
  readonly ledger: OutageLedger;
  readonly reconciliation: Reconciliation;
  readonly onBreakerChange: (change: Omit<BreakerChangeEvent, 'driver'>) => void;
}

/**
 * Knows whether Redis can be asked, and sees it through an outage: probes it, learns who else is back and whether data
 * was lost, brings Redis up to date, and lets the limits in it grow back. It decides no call.
 */
export class RedisWatch {
  /** The store's time, as far as it is known here. */
  readonly clock: Clock;
  readonly #options: RedisWatchOptions;
  readonly #breaker: CircuitBreaker;
  readonly #fleet: Fleet;
  readonly #dataSets: DataSets;
  readonly #settlement: Settlement;
  readonly #deferred = new DeferredChanges();
  #place: FleetPlace;
  #regrowth: Regrowth | undefined;
  /** When the breaker opened, in the store's milliseconds. */
  #lostAt = 0;
  #beats = 0;
  #suspectAgainAt = 0;
  #cancelBeat = () => {};
  #lastError: Error | undefined;
  #closed = false;

  constructor(options: RedisWatchOptions) {
    const { redis, group, settings, clock, usage, ledger, reconciliation } = options;
    const { connection, storage } = redis;
    const { timeoutMs, heartbeatMs, failureThreshold, coolOffMs } = settings;
    this.#options = options;
    this.#place = { size: settings.expectedInstances ?? 1, rank: 0 };
    const serverClock = new ServerClock();
    this.clock = clock ?? serverClock;
    const call = new RedisCall({ connection, timeoutMs, serverClock, clock });
    this.#fleet = new Fleet({ call, key: storage.own(`fleet:${group}`), heartbeatMs });
    this.#dataSets = new DataSets(connection, storage, call);
    this.#breaker = new CircuitBreaker({
      failureThreshold,
      coolOffMs,
      clock: this.clock,
      probe: () => this.#probe(),
      onChange: (change) => this.#breakerChanged(change),
    });
    this.#settlement = new Settlement({
      redis,
      usage,
      ledger,
      reconciliation,
      clock: this.clock,
      dataSet: () => this.dataSet,
      isReachable: () => this.letsThrough && !this.#closed,
      failed: (error) => this.failed(error),
      onSettled: () => this.#checkRecovered(),
    });
    connection.onState((state) => {
      if (state === 'lost') this.trip();
    });
  }

  /** Whether calls go to Redis. */
  get letsThrough(): boolean {
    return this.#breaker.letsThrough;
  }

  get state(): BreakerState['name'] {
    return this.#breaker.state.name;
  }

  /** Where this instance stands among those that share the limits. Frozen while Redis is away. */
  get place(): FleetPlace {
    return this.#place;
  }

  /** Which data set Redis has, as far as is known. */
  get dataSet(): number {
    return this.#dataSets.generation;
  }

  /** Whether Redis is asked by a part of each quota: instances are coming back. */
  get isPartial(): boolean {
    return this.#regrowth !== undefined;
  }

  /** Why Redis can't be asked, or what was wrong with what it was last asked. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Joins the instances that share the limits. Rejects where Redis can't be asked. */
  async join(): Promise<void> {
    const { place } = await this.#askFleet();
    if (this.#closed) return;
    this.#place = place;
    this.#beatLater();
  }

  /** What Redis is asked: it is reminded of what it has lost, and for some time after an outage has a part of the quota. */
  forRedis<T extends Counter>(counters: readonly T[]): readonly T[] {
    if (this.#settlement.reminds) for (const counter of counters) this.#settlement.remind(counter);
    const regrowth = this.#regrowth;
    return regrowth === undefined
      ? counters
      : counters.map((counter) => ({ ...counter, quota: regrowth.scale(counter.quota) }));
  }

  /** Redis has answered a call. */
  succeeded(): void {
    this.#breaker.succeeded();
    // Late answers don't tell that Redis is back.
    if (this.letsThrough) this.#lastError = undefined;
  }

  /** Notes a failure. True where it says that Redis is unavailable. */
  failed(error: unknown): boolean {
    if (this.#closed) return false;
    this.#lastError = asError(error);
    if (!isRedisUnavailable(error)) return false;
    this.#breaker.failed(error);
    return true;
  }

  /** Redis is left alone from now on; without an error, because there is no connection. */
  trip(error: unknown = connectionLost(this.#options.redis.connection.lastError)): void {
    this.#breaker.trip(error);
  }

  /** Redis is charged soon with what is let through locally now. */
  settleSoon(): void {
    this.#settlement.startSoon();
  }

  /** Does not wait for the next beat to find that Redis has lost its data, but does not ask all the time either. */
  suspectLoss(): void {
    const now = performance.now();
    if (this.#settlement.reminds || now < this.#suspectAgainAt) return;
    this.#suspectAgainAt = now + SUSPICION_PAUSE_MS;
    const before = this.dataSet;
    this.#dataSets.check().then(
      () => before !== this.dataSet && this.#settlement.start(),
      (error: unknown) => this.failed(error),
    );
  }

  /** Has something changed in Redis: now, or when it is back. */
  async change(change: () => Promise<void>): Promise<void> {
    if (this.letsThrough) {
      try {
        return await change();
      } catch (error) {
        if (!this.failed(error)) throw error;
      }
    }
    this.#deferred.add(change);
  }

  /** Says farewell to the other instances. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelBeat();
    this.#settlement.stop();
    this.#breaker.stop();
    if (this.#options.redis.connection.state === 'ready') await this.#fleet.leave().catch(() => {});
  }

  get #isFair(): boolean {
    return this.#options.settings.fallback === 'fair-share';
  }

  #breakerChanged(change: Omit<BreakerChangeEvent, 'driver'>): void {
    if (change.error !== undefined) this.#lastError = asError(change.error);
    if (change.current === 'open') {
      if (change.previous !== 'half-open') this.#lostAt = this.#now();
      this.#cancelBeat();
    }
    if (change.current === 'closed') this.#lastError = undefined;
    this.#options.onBreakerChange(change);
    if (change.current === 'recovering') this.#recover();
  }

  /** Asks whether Redis is back, what it still knows, and who else is back. */
  async #probe(): Promise<void> {
    try {
      const beat = await this.#askFleet();
      if (!this.#closed) this.#returned(beat);
    } catch (error) {
      this.#lastError = asError(error);
      this.#options.redis.connection.renew();
      throw error;
    }
  }

  /** One after the other: an instance that can't reach every master is not back, and may not be counted as such. */
  async #askFleet(): Promise<Beat> {
    await this.#dataSets.check();
    return this.#fleet.beat(this.#lostAt);
  }

  #returned({ place, back }: Beat): void {
    const { coolOffMs, heartbeatMs, minShare } = this.#options.settings;
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
    if (!this.#isFair) {
      this.#options.ledger.clear();
      this.#options.reconciliation.tell();
    }
    this.#beatLater();
    void this.#deferred.make((error) => !this.failed(error)).then(() => this.#settlement.start());
  }

  #checkRecovered(): void {
    if (this.#regrowth !== undefined || !this.#settlement.isDone || this.#deferred.size > 0) return;
    this.#breaker.recovered('all instances are back, and Redis knows what was let through without it');
  }

  #beatLater(): void {
    this.#cancelBeat();
    if (this.#closed) return;
    const { heartbeatMs } = this.#options.settings;
    const pause = Math.min(FIRST_BEATS_MS[this.#beats++] ?? heartbeatMs, heartbeatMs);
    this.#cancelBeat = startBackgroundTimer(
      this.#options.clock,
      () => void this.#beat(),
      Math.ceil(pause * (1 - BEAT_JITTER * Math.random())),
    );
  }

  async #beat(): Promise<void> {
    if (this.#closed || !this.letsThrough) return;
    try {
      const { usage, ledger, reconciliation } = this.#options;
      const before = this.dataSet;
      this.#heardOf(await this.#askFleet());
      if (before !== this.dataSet) this.#settlement.start();
      usage.sweep(this.#now());
      ledger.sweep(this.#now());
      reconciliation.tell();
      if (this.state === 'recovering') this.#settlement.start();
    } catch (error) {
      this.failed(error);
    }
    if (this.letsThrough) this.#beatLater();
  }

  #now(): number {
    return Math.floor(this.clock.now());
  }
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
