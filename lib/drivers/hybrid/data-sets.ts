import { randomInt } from 'node:crypto';
import type { StorageKeys } from '../../core/storage-key.js';
import { clusterSlot } from '../redis/cluster-slot.js';
import type { RedisConnection } from '../redis/redis-connection.js';
import { DATA_SET_SCRIPT } from './fleet-script.js';
import type { RedisCall } from './redis-call.js';

/** How long a data set is known by its number without being asked: longer than anything in it lives. */
const LIFE_MS = 400 * 86_400_000;
const SLOTS = 16_384;

interface Mark {
  readonly dataSet: number;
  readonly asked: number;
}

/**
 * Whether Redis still has the data it had. A number stands on every master: where it is another one, or was asked for
 * less often than is remembered, data was lost, be it by a restart, `FLUSHALL`, or a replica that lagged.
 */
export class DataSets {
  readonly #connection: RedisConnection;
  readonly #storage: StorageKeys;
  readonly #call: RedisCall;
  /** By key: what stood there last. */
  readonly #marks = new Map<string, Mark>();
  #generation = 0;

  constructor(connection: RedisConnection, storage: StorageKeys, call: RedisCall) {
    this.#connection = connection;
    this.#storage = storage;
    this.#call = call;
  }

  /** Goes up with each loss that was found. */
  get generation(): number {
    return this.#generation;
  }

  /** Asks every master. Rejects where one can't be reached. */
  async check(): Promise<void> {
    const losses = await Promise.all(this.#keys().map((key) => this.#hasLost(key)));
    if (losses.includes(true)) this.#generation++;
  }

  async #hasLost(key: string): Promise<boolean> {
    const fresh = randomInt(1, 2 ** 47);
    const [dataSet = 0, asked = 0] = await this.#call.run(DATA_SET_SCRIPT, key, [fresh, LIFE_MS], '');
    const known = this.#marks.get(key);
    this.#marks.set(key, { dataSet, asked });
    return known !== undefined && (known.dataSet !== dataSet || asked <= known.asked);
  }

  /** One key a master, by the first slot that it has. */
  #keys(): string[] {
    if (!this.#connection.isCluster) return [this.#storage.own('data-set')];
    const nodes = new Map<string, number>();
    for (let slot = 0; slot < SLOTS; slot++) {
      const node = this.#connection.nodeOf(slot);
      if (!nodes.has(node)) nodes.set(node, slot);
    }
    return [...nodes.values()].map((slot) => this.#storage.own(`data-set:{${tagOfSlot(slot)}}`));
  }
}

const tags = new Map<number, string>();

/** Some text whose slot it is. */
function tagOfSlot(slot: number): string {
  let tag = tags.get(slot);
  for (let i = 0; tag === undefined; i++) {
    if (clusterSlot(String(i)) === slot) tag = String(i);
  }
  tags.set(slot, tag);
  return tag;
}
