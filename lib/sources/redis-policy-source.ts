import { RateLimitConfigError, RateLimitError } from '../core/errors.js';
import type { PolicyOptions } from '../core/policy.js';
import type {
  OpenPolicySource,
  PolicySet,
  PolicySource,
  PolicySourceContext,
} from '../core/policy-source.js';
import { keyPrefixOf, parseRedisSource, type RedisSource } from '../core/redis-address.js';
import { StorageKeys } from '../core/storage-key.js';
import { validate, wholeNumber } from '../core/validation.js';
import { startBackgroundTimer } from '../core/background-timer.js';
import { RedisConnection } from '../drivers/redis/redis-connection.js';
import { isRedisUnavailable } from '../drivers/redis/redis-errors.js';
import { PolicyStore } from './policy-store.js';
import { POLICY_STORE_SCRIPT } from './policy-store-script.js';
import { haveSameJson, NOTHING_STORED, optionsIn, type StoredPolicies } from './stored-policies.js';
import { untilQuiet } from './until-quiet.js';

export interface RedisPolicySourceOptions {
  /** Where Redis is; default: the module's `redis`. */
  readonly redis?: RedisSource;
  /**
   * How often Redis is asked whether something has changed, in whole milliseconds, 10 to 1,000; default 500. Changes are
   * published, too: this is for messages that are lost.
   */
  readonly pollIntervalMs?: number;
}

const NAME = 'redisSource()';
const DEFAULT_POLL_MS = 500;
const MOST_POLL_MS = 1_000;
/** Others change the same policy at the same time: one of them gets ahead each time. */
const MOST_ATTEMPTS = 200;

/**
 * The fleet's policies in Redis: what `updatePolicy(name, patch, { scope: 'fleet' })` stores there is taken over by every
 * instance within a second, and by those that start later. Without Redis the policies known last stay.
 * @throws RateLimitConfigError where an option is wrong; the start fails with one where no Redis is named at all
 */
export function redisSource(options: RedisPolicySourceOptions = {}): PolicySource {
  const pollMs = pollInterval(options.pollIntervalMs);
  return {
    name: NAME,
    unit: 'policy',
    async open(context) {
      const redis = options.redis ?? context.redis;
      if (redis === undefined) {
        throw new RateLimitConfigError({
          code: 'RL_INVALID_OPTION',
          path: 'redisSource.redis',
          expected: "the address of a Redis, here or in the module's `redis`",
          received: redis,
        });
      }
      const opened = new OpenRedisSource(redis, pollMs, context);
      await opened.start();
      return opened;
    },
  };
}

function pollInterval(given: number = DEFAULT_POLL_MS): number {
  const ms = validate(wholeNumber('RL_INVALID_OPTION', 10), given, 'redisSource.pollIntervalMs');
  if (ms <= MOST_POLL_MS) return ms;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: 'redisSource.pollIntervalMs',
    expected: `at most ${MOST_POLL_MS}: a change reaches every instance within a second`,
    received: given,
  });
}

class OpenRedisSource implements OpenPolicySource {
  readonly #context: PolicySourceContext;
  readonly #connection: RedisConnection;
  readonly #store: PolicyStore;
  readonly #channel: string;
  readonly #pollMs: number;
  #known: StoredPolicies = NOTHING_STORED;
  #policies: PolicySet = {};
  #isAway = false;
  /**
   * Whether what answers may be another server than before. One that had not yet got the latest change may have been
   * given another since, under the same version.
   */
  #mayBeAnother = false;
  #isClosed = false;
  #cancelPoll = () => {};
  /** Updates of this instance go one after the other. */
  #lastUpdate: Promise<unknown> = Promise.resolve();

  constructor(redis: RedisSource, pollMs: number, context: PolicySourceContext) {
    const source = parseRedisSource(redis);
    const storage = new StorageKeys(keyPrefixOf(source) + context.prefix);
    this.#context = context;
    this.#pollMs = pollMs;
    this.#channel = storage.own('policies:changed');
    this.#connection = new RedisConnection({ source, script: POLICY_STORE_SCRIPT, reconnectGraceMs: 0 });
    this.#connection.onState(() => {
      this.#mayBeAnother = true;
    });
    this.#store = new PolicyStore({
      connection: this.#connection,
      keys: [
        storage.own('{policies}'),
        storage.own('{policies}:version'),
        storage.own('{policies}:data-set'),
      ],
      channel: this.#channel,
    });
  }

  get policies(): PolicySet {
    return this.#policies;
  }

  /** Reads what there is. Without Redis there is nothing yet. */
  async start(): Promise<void> {
    try {
      await this.#connection.started;
      await this.#read();
      // Not waited for: a cluster's or a far away server's subscription may take its time, and is only the faster way.
      void this.#connection.subscribe(
        this.#channel,
        () => this.#readSoon(),
        (listening) => listening && this.#readSoon(),
      );
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#pollLater();
  }

  update(policy: string, patch: Readonly<Partial<PolicyOptions>>): Promise<void> {
    for (const [field, value] of Object.entries(patch)) requireJson(policy, field, value);
    const update = this.#lastUpdate.then(() => this.#update(policy, patch)).catch(asOurs);
    this.#lastUpdate = update.catch(() => {});
    return update;
  }

  where(policy: string): string {
    return `${NAME}, version ${this.#known.version}, ${JSON.stringify(policy)}`;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPoll();
    await this.#connection.close();
  }

  async #update(policy: string, patch: Readonly<Partial<PolicyOptions>>): Promise<void> {
    // What is not known yet can't be changed: an instance that started without Redis reads first.
    if (this.#known === NOTHING_STORED) this.#take(await this.#store.read(this.#known));
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const known = this.#known;
      const { done, stored } = await this.#store.replace(known, policy, patchedJson(known, policy, patch));
      // Another answer of this connection may have been newer, but what was compared was that of `known`.
      this.#take(stored);
      if (done) return;
    }
    throw new RateLimitConfigError({
      code: 'RL_SOURCE_REJECTED',
      path: `${NAME}: policies.${policy}`,
      expected: `nobody else to change it ${MOST_ATTEMPTS} times meanwhile`,
      received: patch,
    });
  }

  readonly #readSoon = untilQuiet(() => this.#read().catch((error: unknown) => this.#tellAway(error)));

  async #read(): Promise<void> {
    if (this.#isClosed) return;
    const whole = this.#mayBeAnother;
    this.#mayBeAnother = false;
    try {
      this.#take(await this.#store.read(this.#known, whole));
      this.#isAway = false;
    } catch (error) {
      this.#mayBeAnother = true;
      // What Redis refuses may be put right there, as a key that holds something else: it is asked again.
      if (!isRedisUnavailable(error) && (error as Error).name !== 'ReplyError') throw error;
      if ((error as { code?: string }).code === 'RL_REDIS_TIMEOUT') this.#connection.renew();
      this.#tellAway(error);
    }
  }

  #tellAway(error: unknown): void {
    if (this.#isAway || this.#isClosed) return;
    this.#isAway = true;
    this.#context.report({
      code: 'RL_SOURCE_UNAVAILABLE',
      message: `${NAME}: Redis can't be asked, and the policies known last stay until it can: ${(error as Error).message}`,
    });
  }

  /** Takes over what is newer than what is known, and what another server has. */
  #take(stored: StoredPolicies): void {
    const { dataSet, version } = this.#known;
    if (this.#isClosed || (stored.dataSet.id === dataSet.id && stored.version < version)) return;
    const isNews = !haveSameJson(stored, this.#known);
    this.#known = stored;
    if (!isNews) return;
    this.#policies = this.#parsed(stored);
    this.#context.changed(this.#policies);
  }

  #parsed({ json }: StoredPolicies): PolicySet {
    const entries = [...json].map(([name, text]) => {
      try {
        return [name, JSON.parse(text) as unknown];
      } catch {
        // What can't be read is refused where everything is checked, under this policy's name.
        return [name, text];
      }
    });
    return Object.fromEntries(entries) as PolicySet;
  }

  #pollLater(): void {
    if (this.#isClosed) return;
    this.#cancelPoll = startBackgroundTimer(
      undefined,
      () => {
        this.#readSoon();
        this.#pollLater();
      },
      this.#pollMs,
    );
  }
}

/** The JSON of a policy with a patch; `undefined` where nothing is left. */
function patchedJson(
  { json }: StoredPolicies,
  policy: string,
  patch: Readonly<Partial<PolicyOptions>>,
): string | undefined {
  const merged = { ...optionsIn(json.get(policy)), ...patch };
  const text = JSON.stringify(merged);
  return text === '{}' ? undefined : text;
}

/** @throws RateLimitConfigError for what can't be stored */
function requireJson(policy: string, field: string, value: unknown): void {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.every((item) => ['string', 'number', 'undefined'].includes(typeof item))) return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: `updatePolicy('${policy}').${field}`,
    expected: 'text or numbers: what the fleet shares is stored as JSON, and has no functions in it',
    received: value,
  });
}

/** The client's errors have no code of ours. A command on its way when the connection broke may have been carried out. */
function asOurs(error: unknown): never {
  if (error instanceof RateLimitError || !isRedisUnavailable(error)) throw error;
  const why = (error as Error).message;
  throw new RateLimitError('RL_REDIS_NOT_READY', `Redis can't be asked, or its answer was lost: ${why}`, {
    cause: error,
  });
}
