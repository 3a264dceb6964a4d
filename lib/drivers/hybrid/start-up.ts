import type { DiagnosticSink } from '../../core/diagnostics.js';
import type { CompletedHybridOptions } from '../../core/engine-options.js';
import type { RedisDriver } from '../redis/redis-driver.js';
import { isRedisUnavailable } from '../redis/redis-errors.js';
import type { RedisWatch } from './redis-watch.js';

/** The longest that start-up waits for Redis, in milliseconds. */
const START_UP_MS = 2_000;

export interface StartUpOptions {
  readonly redis: RedisDriver;
  readonly watch: RedisWatch;
  readonly settings: CompletedHybridOptions;
  readonly report: DiagnosticSink | undefined;
}

/** Begins with Redis, or without it where it isn't there in time. */
export class StartUp {
  /** Settles when it is over; rejects where it can never work. */
  readonly done: Promise<void>;
  readonly #options: StartUpOptions;
  #isOver = false;
  #fatal: Error | undefined;

  constructor(options: StartUpOptions) {
    this.#options = options;
    this.done = this.#run();
    // Whoever calls is told by the call.
    this.done.catch(() => {});
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Why it can never work. */
  get fatal(): Error | undefined {
    return this.#fatal;
  }

  /** Resolves when it is over. A call waits for that no longer than for an answer; then it goes on without Redis. */
  async wait(): Promise<void> {
    const { watch, settings } = this.#options;
    await withinMs(this.done, settings.timeoutMs).catch(() => {});
    if (this.#isOver) return;
    this.#isOver = true;
    watch.trip();
  }

  async #run(): Promise<void> {
    const { redis, watch } = this.#options;
    try {
      await withinMs(redis.started, START_UP_MS);
      if (redis.connection.state === 'ready') await watch.join();
      else this.#goOnWithoutRedis();
    } catch (error) {
      if (!isRedisUnavailable(error)) {
        this.#fatal = error as Error;
        throw error;
      }
      this.#goOnWithoutRedis(error);
    } finally {
      this.#isOver = true;
    }
  }

  #goOnWithoutRedis(error?: unknown): void {
    const { watch, settings, report } = this.#options;
    if (watch.isClosed) return;
    watch.trip(error);
    if (settings.expectedInstances !== undefined || settings.fallback === 'full') return;
    const why = watch.lastError === undefined ? '' : ` (${watch.lastError.message})`;
    report?.({
      code: 'RL_FLEET_UNKNOWN',
      message: `Redis could not be used at start-up${why}, and hybrid.expectedInstances is not set: until it can, this instance takes itself for the only one, and admits every limit in full`,
    });
  }
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
