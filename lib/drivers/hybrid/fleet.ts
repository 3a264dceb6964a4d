import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { FleetPlace } from './fair-share.js';
import { BEAT_SCRIPT } from './fleet-script.js';
import type { RedisCall } from './redis-call.js';

/** An instance that missed so many beats is no longer counted. */
export const MISSED_BEATS = 3;

export interface FleetOptions {
  readonly call: RedisCall;
  /** Of the sorted set of those that share the limits. */
  readonly key: string;
  readonly heartbeatMs: number;
}

/** What a beat has told. */
export interface Beat {
  readonly place: FleetPlace;
  /** How many instances have beaten since the time that was asked for. */
  readonly back: number;
}

/** The instances that share the limits. Each beats in Redis as long as it lives. */
export class Fleet {
  readonly #options: FleetOptions;
  /** Sorts alike everywhere, which gives each instance its rank. */
  readonly #name = `${hostname()}:${process.pid}:${randomBytes(6).toString('hex')}`;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  /** @param since in the store's milliseconds */
  beat(since: number): Promise<Beat> {
    return this.#run(since, false);
  }

  /** The others need not wait until three beats were missed. */
  async leave(): Promise<void> {
    await this.#run(0, true);
  }

  async #run(since: number, leaves: boolean): Promise<Beat> {
    const { call, key, heartbeatMs } = this.#options;
    const numbers = [MISSED_BEATS * heartbeatMs, since, leaves ? 1 : 0];
    const [size = 1, rank = 0, back = 1] = await call.run(BEAT_SCRIPT, key, numbers, this.#name);
    return { place: { size, rank }, back };
  }
}
