import { ALGORITHMS } from '../../algorithms/index.js';
import type { Receipt } from '../../core/algorithm.js';
import { wholeTime, type Clock } from '../../core/clock.js';
import type { Charge, Counter, Decision, Driver, DriverStatus } from '../../core/driver.js';
import { RateLimitError } from '../../core/errors.js';
import { keyPrefixOf, parseRedisSource, type RedisSource } from '../../core/redis-address.js';
import { DEFAULT_PREFIX, StorageKeys } from '../../core/storage-key.js';
import { decideInParts } from '../group-in-parts.js';
import { DenyCache } from './deny-cache.js';
import {
  BlockOperation,
  DecideOperation,
  GiveBackOperation,
  PeekOperation,
  RefundOperation,
  ResetOperation,
  SettleOperation,
  UnblockOperation,
  type DecidedGroup,
  type Operation,
  type Settled,
} from './operations.js';
import { RedisConnection } from './redis-connection.js';
import { slotOf, TurnBatcher } from './turn-batcher.js';
import { UniversalScript } from './universal-script.js';

export interface RedisDriverOptions {
  readonly redis: RedisSource;
  /** What every key begins with, without braces; default `distlimit`. */
  readonly prefix?: string;
  /** Rules every decision in place of Redis' own time. For tests. */
  readonly clock?: Clock;
  /** The longest that a call may take, in milliseconds, ≥ 1; default 1,000. */
  readonly timeoutMs?: number;
  /** How long calls wait for a connection that was just lost, in milliseconds; default 1,000, 0 fails at once. */
  readonly reconnectGraceMs?: number;
  /** @internal Told of everything that Redis itself has decided. */
  readonly onDecided?: (charges: readonly Charge[], decided: DecidedGroup) => void;
}

const DEFAULT_TIMEOUT_MS = 1_000;
const DEFAULT_RECONNECT_GRACE_MS = 1_000;

/** Counters in Redis, shared by all processes: one script decides, and everything of one event-loop turn goes together. */
export class RedisDriver implements Driver {
  readonly name = 'redis';
  readonly #connection: RedisConnection;
  readonly #batcher: TurnBatcher;
  readonly #script = new UniversalScript(Object.values(ALGORITHMS));
  readonly #storage: StorageKeys;
  readonly #denials = new DenyCache();
  readonly #clock: Clock | undefined;
  readonly #onDecided: RedisDriverOptions['onDecided'];
  #lastError: Error | undefined;
  #closed = false;
  /** Settles when start-up is over, connected or not; rejects with a RateLimitConfigError where it can never work. */
  readonly started: Promise<void>;

  /** @throws RateLimitConfigError where the source is none */
  constructor(options: RedisDriverOptions) {
    const source = parseRedisSource(options.redis);
    this.#clock = options.clock;
    this.#onDecided = options.onDecided;
    this.#storage = new StorageKeys(keyPrefixOf(source) + (options.prefix ?? DEFAULT_PREFIX));
    const channel = this.#storage.own('changed');
    this.#connection = new RedisConnection({
      source,
      script: this.#script.current,
      reconnectGraceMs: options.reconnectGraceMs ?? DEFAULT_RECONNECT_GRACE_MS,
    });
    this.#batcher = new TurnBatcher({
      connection: this.#connection,
      script: this.#script,
      storage: this.#storage,
      channel,
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      clock: options.clock,
    });
    this.started = this.#start(channel);
    this.started.catch(() => {});
  }

  decide(group: readonly Charge[]): Promise<readonly Decision[]> {
    const [only] = group;
    if (only !== undefined && group.length === 1) {
      const denied =
        this.#denials.size > 0 ? this.#denials.find(this.#keyOf(only), only, this.#now()) : undefined;
      if (denied !== undefined) return Promise.resolve([denied]);
    }
    return this.#decide(group);
  }

  peek(counter: Counter): Promise<Decision> {
    return this.#do(new PeekOperation(counter), counter);
  }

  refund(counter: Counter, receipt: Receipt): Promise<void> {
    return this.#change(counter, new RefundOperation(counter, announces(counter), receipt));
  }

  giveBack(counter: Counter, cost: number): Promise<void> {
    return this.#change(counter, new GiveBackOperation(counter, announces(counter), cost));
  }

  reset(counter: Counter): Promise<void> {
    return this.#change(counter, new ResetOperation(counter, announces(counter)));
  }

  block(counter: Counter, durationMs: number): Promise<void> {
    return this.#change(counter, new BlockOperation(counter, announces(counter), durationMs));
  }

  unblock(counter: Counter): Promise<void> {
    return this.#change(counter, new UnblockOperation(counter, announces(counter)));
  }

  /**
   * @internal Leaves at most `most` of a counter, and of that takes `cost`, or as much of it as there is.
   */
  settle(counter: Counter, most: number, cost: number): Promise<Settled> {
    return this.#do(new SettleOperation(counter, most, cost), counter);
  }

  /** @internal */
  get connection(): RedisConnection {
    return this.#connection;
  }

  /** @internal */
  get storage(): StorageKeys {
    return this.#storage;
  }

  status(): DriverStatus {
    return {
      driver: this.name,
      breaker: null,
      fleetSize: null,
      keys: this.#denials.size,
      evictions: 0,
      lastError: (this.#lastError ?? this.#connection.lastError)?.message ?? null,
    };
  }

  /** Answers what was asked, and closes the connection that was opened here: never one that was given. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#denials.listening = false;
    if (this.#connection.state === 'ready') await this.#batcher.drained();
    await this.#connection.close();
    // Whoever still waited for a connection is told that there will be none.
    await this.#batcher.drained();
  }

  async #start(channel: string): Promise<void> {
    await this.#connection.started;
    if (this.#closed) return;
    await this.#connection.subscribe(
      channel,
      (key) => this.#denials.forget(key, this.#batcher.nextNumber),
      (listening) => (this.#denials.listening = listening && !this.#closed),
    );
  }

  async #decide(group: readonly Charge[]): Promise<readonly Decision[]> {
    const starting = this.#ready(group);
    if (starting !== undefined) await starting;
    if (group.length > 1 && this.#connection.isCluster && spansSlots(group)) {
      return decideInParts(group, ({ subject }) => slotOf(subject), {
        decide: (part) => this.#decideInSlot(part),
        refund: (charge, receipt) => this.refund(charge, receipt),
        peek: (charge) => this.peek(charge),
      });
    }
    return (await this.#decideInSlot(group)).decisions;
  }

  async #decideInSlot(charges: readonly Charge[]): Promise<DecidedGroup> {
    const decided = await this.#submit(new DecideOperation(charges));
    this.#onDecided?.(charges, decided);
    for (const [i, state] of decided.denials.entries()) {
      if (state === undefined) continue;
      const charge = charges[i]!;
      // A log is not at hand to tell what its counter's other charges of the group had to do with it.
      if (state.registers === undefined && isRepeated(charge, charges)) continue;
      this.#denials.remember(this.#keyOf(charge), charge, decided.decisions[i]!, state, decided.sent);
    }
    return decided;
  }

  /** A denial that was sent for before the change is done may be older than the change, and is not remembered. */
  async #change(counter: Counter, operation: Operation<void>): Promise<void> {
    const key = this.#keyOf(counter);
    this.#denials.forget(key, Infinity);
    try {
      await this.#do(operation, counter);
    } finally {
      this.#denials.forget(key, this.#batcher.nextNumber);
    }
  }

  async #do<T>(operation: Operation<T>, counter: Counter): Promise<T> {
    const starting = this.#ready([counter]);
    if (starting !== undefined) await starting;
    return this.#submit(operation);
  }

  /** @throws RateLimitError where this can't be decided in Redis, whatever its state */
  #ready(counters: readonly Counter[]): Promise<void> | undefined {
    if (this.#closed) throw new RateLimitError('RL_CLOSED', 'the limiter was closed');
    for (const { policy } of counters) this.#script.indexOf(policy.arithmetic);
    return this.#connection.state === 'starting' ? this.started : undefined;
  }

  async #submit<T>(operation: Operation<T>): Promise<T> {
    try {
      const answer = await this.#batcher.submit(operation);
      this.#lastError = undefined;
      return answer;
    } catch (error) {
      this.#lastError = error as Error;
      throw error;
    }
  }

  #keyOf({ policy, subject }: Counter): string {
    return this.#storage.of(policy.name, policy.algorithm, subject).counter;
  }

  #now(): number {
    return this.#clock === undefined ? performance.now() : wholeTime(this.#clock);
  }
}

/** Others need not hear of changes to what they don't remember. */
function announces({ policy }: Counter): boolean {
  return DenyCache.suits(policy);
}

/** Whether a group charges one counter more than once. */
function isRepeated({ policy, subject }: Charge, group: readonly Charge[]): boolean {
  return (
    group.length > 1 &&
    group.filter((other) => other.policy.name === policy.name && other.subject === subject).length > 1
  );
}

function spansSlots(group: readonly Charge[]): boolean {
  const [first] = group;
  return group.some(
    ({ subject }) => subject !== first!.subject && slotOf(subject) !== slotOf(first!.subject),
  );
}
