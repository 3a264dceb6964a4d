import { RateLimitError } from '../../core/errors.js';
import type { ParsedSource } from '../../core/redis-address.js';
import type { PackedBatch } from './batch.js';
import { openClient, subscriberOf } from './open-client.js';
import type { ClusterClient, RedisClient } from './redis-client.js';
import { isRedisUnavailable, isScriptMissing } from './redis-errors.js';
import type { Script } from './universal-script.js';

/** How long start-up waits for a connection and a loaded script. */
const START_UP_MS = 2_000;
/** How long a server that has taken the connection may take until it serves. */
const HANDSHAKE_MS = 2_000;

/** `starting`: not connected yet, and that is no failure; `lost`: it was, and is being restored. */
export type ConnectionState = 'starting' | 'ready' | 'lost' | 'closed';

export interface RedisConnectionOptions {
  readonly source: ParsedSource;
  /** Loaded at start-up. */
  readonly script: Script;
  /** How long a command waits for a connection that was just lost, in milliseconds; 0 fails at once. */
  readonly reconnectGraceMs: number;
}

/**
 * The connection to Redis: our own, whatever the application has. It is restored by itself, and never queues a command.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  /** Settles when start-up is over; rejects where it can never work. */
  readonly started: Promise<void>;
  readonly #stateListeners: ((state: ConnectionState) => void)[] = [];
  #client: RedisClient | undefined;
  #subscriber: RedisClient | undefined;
  #state: ConnectionState = 'starting';
  /** Until when commands wait for a connection. */
  #patientUntil = performance.now() + START_UP_MS;
  #waiting: (() => void)[] = [];
  #handshake: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.started = this.#start();
    // Whoever needs the connection is told by it.
    this.started.catch(() => {});
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** What went wrong with the connection, and not with a command, since it was last there. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Whether keys are spread over slots. Known once it has started. */
  get isCluster(): boolean {
    return this.#client?.isCluster === true;
  }

  /** The node that has a slot, by host and port; without a cluster there is one. */
  nodeOf(slot: number): string {
    return this.isCluster ? ((this.#client as ClusterClient).slots[slot]?.[0] ?? '') : '';
  }

  onState(listener: (state: ConnectionState) => void): void {
    this.#stateListeners.push(listener);
  }

  /**
   * `undefined` where a command can be sent now, else a promise of that.
   * @throws RateLimitError (rejects) with `RL_REDIS_NOT_READY` or `RL_CLOSED`
   */
  available(): Promise<void> | undefined {
    return this.#state === 'ready' ? undefined : this.#becomesReady();
  }

  /** Has what `send` sends go to each node in one write: system calls cost more than the commands. */
  inOneWrite(send: () => void): void {
    const streams = this.#masters(this.#client!).map(({ stream }) => stream);
    for (const stream of streams) stream?.cork();
    try {
      send();
    } finally {
      for (const stream of streams) stream?.uncork();
    }
  }

  /** Runs a batch. */
  run({ script, keys, numbers }: PackedBatch, channel: string): Promise<Buffer> {
    return this.evaluate(script, keys, [numbers, channel]) as Promise<Buffer>;
  }

  /**
   * Runs a script, and sends it whole where the server doesn't have it: after a restart, a failover, `SCRIPT FLUSH`, or
   * on another node.
   */
  async evaluate(
    script: Script,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<unknown> {
    const client = this.#client!;
    try {
      return await client.evalshaBuffer(script.sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!isScriptMissing(error)) throw this.#noted(error);
    }
    try {
      return await client.evalBuffer(script.source, keys.length, ...keys, ...args);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  /** Listens to a channel, also after the connection was lost; `onState` is told whether messages arrive. */
  async subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onState: (listening: boolean) => void,
  ): Promise<void> {
    const client = this.#client!;
    const subscriber = (this.#subscriber = subscriberOf(client));
    subscriber.on('message', (from: string, message: string) => {
      if (from === channel) onMessage(message);
    });
    const listen = async () => {
      try {
        await subscriber.subscribe(channel);
        onState(true);
      } catch (error) {
        this.#lastError = error as Error;
      }
    };
    subscriber.on('close', () => onState(false));
    subscriber.on('ready', () => void listen());
    if (subscriber === client) return listen();
    subscriber.on('error', (error: Error) => void (this.#lastError = error));
    await subscriber.connect().catch(() => {});
  }

  /**
   * Connects anew. A server whose machine is gone leaves a connection that is open for many minutes, and never answers.
   * A cluster's client looks after its nodes itself.
   */
  renew(): void {
    if (this.#state !== 'ready') return;
    if (this.isCluster) (this.#client as ClusterClient).refreshSlotsCache();
    else this.#client!.disconnect(true);
  }

  /** Closes what was opened here, and nothing else. */
  async close(): Promise<void> {
    this.#become('closed');
    await this.started.catch(() => {});
    this.#subscriber?.disconnect();
    this.#client?.disconnect();
  }

  async #start(): Promise<void> {
    const client = await openClient(this.#options.source);
    if (this.#state === 'closed') return;
    this.#client = client;
    // Without a listener an error would end the process.
    client.on('error', (error: Error) => void (this.#lastError = error));
    client.on('node error', (error: Error) => void (this.#lastError = error));
    client.on('close', () => this.#lost());
    client.on('end', () => this.#lost());
    client.on('connect', () => this.#limitHandshake(client));
    client.on('ready', () => void this.#ready(client));
    client.connect().catch(() => {});
    await this.#becomesReady().catch(() => {});
  }

  /** Who takes connections and says nothing, as a proxy whose server is gone, would be waited for without end. */
  #limitHandshake(client: RedisClient): void {
    if (this.isCluster) return;
    clearTimeout(this.#handshake);
    this.#handshake = setTimeout(() => {
      if (this.#state === 'starting' || this.#state === 'lost') client.disconnect(true);
    }, HANDSHAKE_MS).unref();
  }

  async #ready(client: RedisClient): Promise<void> {
    // Only spares the first commands a round trip: one that meets a node without it sends it along.
    const { source } = this.#options.script;
    await Promise.allSettled(this.#masters(client).map((node) => node.script('LOAD', source)));
    if (client.status !== 'ready') return;
    this.#lastError = undefined;
    this.#become('ready');
  }

  #masters(client: RedisClient): readonly RedisClient[] {
    return this.isCluster ? (client as ClusterClient).nodes('master') : [client];
  }

  #lost(): void {
    if (this.#state !== 'ready') return;
    this.#patientUntil = performance.now() + this.#options.reconnectGraceMs;
    this.#become('lost');
  }

  #become(state: ConnectionState): void {
    if (this.#state === 'closed' || this.#state === state) return;
    this.#state = state;
    for (const listener of this.#stateListeners) listener(state);
    if (state !== 'ready' && state !== 'closed') return;
    clearTimeout(this.#handshake);
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #becomesReady(): Promise<void> {
    const patienceMs = this.#patientUntil - performance.now();
    if (this.#state !== 'closed' && patienceMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, patienceMs);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    if (this.#state === 'ready') return;
    if (this.#state === 'closed') throw new RateLimitError('RL_CLOSED', 'the limiter was closed');
    const cause = this.#lastError;
    throw new RateLimitError(
      'RL_REDIS_NOT_READY',
      `there is no connection to Redis${cause === undefined ? '' : `: ${cause.message}`}`,
      cause && { cause },
    );
  }

  #noted(error: unknown): unknown {
    // Another node may serve the slot by now.
    if (this.isCluster && isRedisUnavailable(error)) (this.#client as ClusterClient).refreshSlotsCache();
    return error;
  }
}
