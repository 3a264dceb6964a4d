import type { RedisConnection } from '../drivers/redis/redis-connection.js';
import { withinDeadline } from '../drivers/redis/within-deadline.js';
import { POLICY_STORE_SCRIPT } from './policy-store-script.js';

/** The fleet's policies as they stand in Redis: JSON by name, and which version that is. */
export interface StoredPolicies {
  readonly version: number;
  readonly json: ReadonlyMap<string, string>;
}

export const NOTHING_STORED: StoredPolicies = { version: 0, json: new Map() };

/** The longest that Redis may take to answer, in milliseconds. */
const TIMEOUT_MS = 1_000;

export function areSame(one: StoredPolicies, other: StoredPolicies): boolean {
  if (one.version !== other.version || one.json.size !== other.json.size) return false;
  return [...one.json].every(([policy, text]) => other.json.get(policy) === text);
}

interface PolicyStoreOptions {
  readonly connection: RedisConnection;
  /** A hash, and a number; on a cluster in one slot. */
  readonly keys: readonly [policies: string, version: string];
  readonly channel: string;
}

/** The fleet's policies in Redis. What Redis has lost is given back by whoever still knows it. */
export class PolicyStore {
  readonly #options: PolicyStoreOptions;

  constructor(options: PolicyStoreOptions) {
    this.#options = options;
  }

  /**
   * What holds now; `known` itself where nothing has changed.
   * @param whole whether the version may be that of another server, and something else stand under it
   */
  async read(known: StoredPolicies, whole = false): Promise<StoredPolicies> {
    const { outcome, stored } = await this.#run(['read', String(known.version), whole ? 'whole' : '']);
    if (outcome === 'same') return known;
    return outcome === 'behind' ? this.#restore(known) : stored;
  }

  /**
   * Replaces the JSON of a policy, where that is still what `known` has; `undefined` removes it.
   * @returns what holds now, and whether the change is part of it
   */
  async replace(
    known: StoredPolicies,
    policy: string,
    json: string | undefined,
  ): Promise<{ readonly done: boolean; readonly stored: StoredPolicies }> {
    const { outcome, stored } = await this.#run([
      'store',
      String(known.version),
      this.#options.channel,
      policy,
      known.json.get(policy) ?? '',
      json ?? '',
    ]);
    if (outcome === 'behind') return { done: false, stored: await this.#restore(known) };
    return { done: outcome === 'stored', stored };
  }

  async #restore(known: StoredPolicies): Promise<StoredPolicies> {
    const pairs = [...known.json].flat();
    const { stored } = await this.#run(['restore', String(known.version), this.#options.channel, ...pairs]);
    return stored;
  }

  async #run(
    args: readonly string[],
  ): Promise<{ readonly outcome: string; readonly stored: StoredPolicies }> {
    const { connection, keys } = this.#options;
    await connection.available();
    const reply = await withinDeadline(TIMEOUT_MS, () =>
      connection.evaluate(POLICY_STORE_SCRIPT, keys, args),
    );
    const [outcome, version, pairs] = reply as [Buffer, Buffer, Buffer[]];
    const json = new Map<string, string>();
    for (let i = 0; i < pairs.length; i += 2) json.set(String(pairs[i]), String(pairs[i + 1]));
    return { outcome: String(outcome), stored: { version: Number(String(version)), json } };
  }
}
