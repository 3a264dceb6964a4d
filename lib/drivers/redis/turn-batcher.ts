import { outsideAnyCall } from '../../core/async-context.js';
import { wholeTime, type Clock } from '../../core/clock.js';
import { RateLimitError } from '../../core/errors.js';
import { hashTag, type StorageKeys } from '../../core/storage-key.js';
import { Batch } from './batch.js';
import { clusterSlot } from './cluster-slot.js';
import type { Operation, Sent } from './operations.js';
import { BATCH } from './protocol.js';
import type { RedisConnection } from './redis-connection.js';
import { ReplyReader } from './reply-reader.js';
import { ServerTime } from './server-time.js';
import type { UniversalScript } from './universal-script.js';

/** How many checks' work goes into one command: no run of the script may hold Redis for long. */
const MAX_WEIGHT = 128;

export interface TurnBatcherOptions {
  readonly connection: RedisConnection;
  readonly script: UniversalScript;
  readonly storage: StorageKeys;
  /** Where those listen who have to be told of changes. */
  readonly channel: string;
  /**
   * The longest that a command may take, in milliseconds. Then its callers are told `RL_REDIS_TIMEOUT`, and Redis does
   * nothing should it come to it later.
   */
  readonly timeoutMs: number;
  /** An explicit clock; without one Redis' own time counts. */
  readonly clock?: Clock | undefined;
}

/** An operation whose caller waits. */
interface Pending {
  readonly operation: Operation<unknown>;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers what is asked for during one turn of the event loop, and sends it in one command: one a slot on a cluster, and
 * more where it is too much work for one.
 */
export class TurnBatcher {
  readonly #options: TurnBatcherOptions;
  readonly #serverTimes = new Map<string, ServerTime>();
  readonly #inFlight = new Set<Promise<void>>();
  #queue: Pending[] = [];
  #sentCommands = 0;

  constructor(options: TurnBatcherOptions) {
    this.#options = options;
    // Behind a name, or Sentinel, there may be another server now, with another clock.
    options.connection.onState(() => this.#serverTimes.clear());
  }

  /** The number that the next command will have. */
  get nextNumber(): number {
    return this.#sentCommands + 1;
  }

  /** What is known of the clock of the node that has a slot. */
  serverTimeOf(slot: number): ServerTime {
    const node = this.#options.connection.nodeOf(slot);
    let time = this.#serverTimes.get(node);
    if (time === undefined) this.#serverTimes.set(node, (time = new ServerTime()));
    return time;
  }

  submit<T>(operation: Operation<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#queue.length === 0) outsideAnyCall(this.#flushLater);
      this.#queue.push({ operation, resolve, reject });
    });
  }

  /** Settles when everything that was submitted is settled. */
  async drained(): Promise<void> {
    while (this.#queue.length > 0 || this.#inFlight.size > 0) {
      if (this.#queue.length > 0) this.#flush();
      await Promise.all(this.#inFlight);
    }
  }

  readonly #flushLater = (): void => {
    setImmediate(this.#flush);
  };

  readonly #flush = (): void => {
    const queue = this.#queue;
    this.#queue = [];
    if (queue.length === 0) return;
    const available = this.#options.connection.available();
    if (available === undefined) return this.#dispatch(queue);
    this.#track(
      available.then(
        () => this.#dispatch(queue),
        (error: unknown) => rejectAll(queue, error),
      ),
    );
  };

  #dispatch(queue: readonly Pending[]): void {
    if (!this.#options.connection.isCluster) return this.#sendInParts(queue, 0);
    const slots = new Map<number, Pending[]>();
    for (const pending of queue) {
      const slot = slotOf(pending.operation.subject);
      const there = slots.get(slot);
      if (there === undefined) slots.set(slot, [pending]);
      else there.push(pending);
    }
    this.#options.connection.inOneWrite(() => {
      for (const [slot, there] of slots) this.#sendInParts(there, slot);
    });
  }

  #sendInParts(queue: readonly Pending[], slot: number): void {
    let part: Pending[] = [];
    let weight = 0;
    for (const pending of queue) {
      if (part.length > 0 && weight + pending.operation.weight > MAX_WEIGHT) {
        this.#track(this.#send(part, slot));
        part = [];
        weight = 0;
      }
      part.push(pending);
      weight += pending.operation.weight;
    }
    this.#track(this.#send(part, slot));
  }

  async #send(pending: readonly Pending[], slot: number): Promise<void> {
    const { timeoutMs } = this.#options;
    const batch = new Batch(this.#options.storage, this.#options.script);
    for (const { operation } of pending) operation.write(batch);
    const deadline = startDeadline(timeoutMs, () =>
      rejectAll(
        pending,
        new RateLimitError('RL_REDIS_TIMEOUT', `Redis did not answer within ${timeoutMs} ms`),
      ),
    );
    try {
      // What came too late did nothing. By a server's clock that was set meanwhile it may not have been: once more.
      const deadlineAt = performance.now() + timeoutMs;
      const done =
        (await this.#attempt(batch, pending, slot, deadlineAt)) ||
        (await this.#attempt(batch, pending, slot, deadlineAt));
      if (!done) deadline.miss();
    } catch (error) {
      rejectAll(pending, error);
    } finally {
      deadline.stop();
    }
  }

  /** False where the server found that it was too late. */
  async #attempt(
    batch: Batch,
    pending: readonly Pending[],
    slot: number,
    deadlineAt: number,
  ): Promise<boolean> {
    const { connection, clock, channel } = this.#options;
    const serverTime = this.serverTimeOf(slot);
    const sentAt = performance.now();
    const held = clock && wholeTime(clock);
    const sent: Sent = { at: held ?? sentAt, number: ++this.#sentCommands };
    const reply = new ReplyReader(
      await connection.run(batch.pack(serverTime.earliestAt(deadlineAt), held), channel),
      batch,
    );
    const serverMs = reply.next();
    serverTime.learn(serverMs, sentAt, performance.now());
    if (reply.next() === BATCH.late) return false;
    for (const { operation, resolve, reject } of pending) {
      try {
        resolve(operation.read(reply, sent, held ?? serverMs) as never);
      } catch (error) {
        reject(error);
      }
    }
    return true;
  }

  #track(work: Promise<void>): void {
    this.#inFlight.add(work);
    void work.finally(() => this.#inFlight.delete(work));
  }
}

/** The slot of all keys of a subject. */
export function slotOf(subject: string): number {
  return clusterSlot(hashTag(subject));
}

function rejectAll(pending: readonly Pending[], error: unknown): void {
  for (const { reject } of pending) reject(error);
}

/**
 * Calls `missed` after `timeoutMs`, and one more poll phase: a reply that is here already, behind a busy event loop, is
 * not late.
 */
export function startDeadline(timeoutMs: number, missed: () => void) {
  let stopped = false;
  const timer = setTimeout(() => {
    setImmediate(() => {
      if (!stopped) missed();
    });
  }, timeoutMs);
  return {
    miss: missed,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
