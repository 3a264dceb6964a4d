import type { RedisConnection } from '../drivers/redis/redis-connection.js';
import { withinDeadline } from '../drivers/redis/within-deadline.js';
import { POLICY_STORE_SCRIPT } from './policy-store-script.js';
import { givenBack, storedPolicies, withPolicy, type StoredPolicies } from './stored-policies.js';

/** The longest that Redis may take to answer, in milliseconds. */
const TIMEOUT_MS = 1_000;
/** Instances give back at the same time what Redis has lost: one of them gets ahead each time. */
const MOST_ATTEMPTS = 20;

interface PolicyStoreOptions {
  readonly connection: RedisConnection;
  /** On a cluster in one slot. */
  readonly keys: readonly [policies: string, version: string, dataSet: string];
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
    const stored = await this.#run('read', known, whole ? 'whole' : '');
    return stored === undefined ? known : this.#reconciled(known, stored.state);
  }

  /**
   * Replaces the JSON of a policy, where everything is still as `known` has it; `undefined` removes it.
   * @returns what holds now, and whether the change is part of it
   */
  async replace(
    known: StoredPolicies,
    policy: string,
    json: string | undefined,
  ): Promise<{ readonly done: boolean; readonly stored: StoredPolicies }> {
    const { done, state } = await this.#write(known, withPolicy(known, policy, json));
    return { done, stored: done ? state : await this.#reconciled(known, state) };
  }

  /** What holds, once Redis has been given back what it has lost. */
  async #reconciled(known: StoredPolicies, found: StoredPolicies): Promise<StoredPolicies> {
    let stored = found;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const wanted = givenBack(known, stored);
      if (wanted === undefined) return stored;
      const { done, state } = await this.#write(stored, wanted);
      if (done) return state;
      stored = state;
    }
    return known;
  }

  async #write(
    before: StoredPolicies,
    after: StoredPolicies,
  ): Promise<{ readonly done: boolean; readonly state: StoredPolicies }> {
    const changes = [...new Set([...before.json.keys(), ...after.json.keys()])].flatMap((policy) => {
      const [old = '', now = ''] = [before.json.get(policy), after.json.get(policy)];
      return old === now ? [] : [policy, old, now];
    });
    const { outcome, state } = (await this.#run(
      'write',
      before,
      this.#options.channel,
      ...after.raw,
      ...changes,
    ))!;
    return { done: outcome === 'written', state };
  }

  async #run(
    command: 'read' | 'write',
    { raw }: StoredPolicies,
    ...args: readonly string[]
  ): Promise<{ readonly outcome: string; readonly state: StoredPolicies } | undefined> {
    const { connection, keys } = this.#options;
    await connection.available();
    const reply = await withinDeadline(TIMEOUT_MS, () =>
      connection.evaluate(POLICY_STORE_SCRIPT, keys, [command, ...raw, ...args]),
    );
    const [outcome, version, dataSet, pairs] = reply as [Buffer, Buffer, Buffer, Buffer[]];
    if (String(outcome) === 'same') return undefined;
    const json = new Map<string, string>();
    for (let i = 0; i < pairs.length; i += 2) json.set(String(pairs[i]), String(pairs[i + 1]));
    return { outcome: String(outcome), state: storedPolicies(String(version), String(dataSet), json) };
  }
}
