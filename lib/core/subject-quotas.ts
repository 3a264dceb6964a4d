import type { Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { ChargeRequest } from './charge-request.js';
import type { Charge } from './driver.js';
import { andThen, isPromiseLike, type MaybePromise } from './maybe-promise.js';
import type { Policy } from './policy.js';
import type { PolicySurroundings } from './policy-completion.js';
import type { PolicySlot } from './policy-registry.js';
import {
  overriddenQuota,
  requireParallel,
  type PolicyResolver,
  type QuotaOverride,
} from './policy-resolver.js';
import { RecentCache } from './recent-cache.js';

/** How many quotas are remembered for a policy, in each of two generations: as many tiers as anybody has. */
const REMEMBERED_QUOTAS = 256;

/** A policy that is decided, or will be. */
interface Decided {
  readonly slot: PolicySlot;
}

/** Makes of requests what a driver is given: subjects as stores see them, quotas as the resolver says. */
export class SubjectQuotas {
  readonly #surroundings: PolicySurroundings;
  readonly #stored: (subject: string) => string;
  /** One object for each quota: drivers keep what follows from a quota by its identity. */
  readonly #known = new WeakMap<Policy, RecentCache<Quota>>();
  readonly #toldOf = new WeakSet<PolicySlot>();
  #resolver: PolicyResolver | undefined;
  /** The names of what the resolver is asked about; `undefined`: everything. */
  #concerned: ReadonlySet<string> | undefined;

  /** @param stored the subject as stores see it */
  constructor(surroundings: PolicySurroundings, stored: (subject: string) => string) {
    this.#surroundings = surroundings;
    this.#stored = stored;
  }

  get resolver(): PolicyResolver | undefined {
    return this.#resolver;
  }

  useResolver(resolver: PolicyResolver): void {
    this.#resolver = resolver;
    this.#concerned = resolver.concerns && new Set(resolver.concerns);
  }

  /** The charge under the policy's own numbers. */
  plainCharge({ slot, subject, cost }: ChargeRequest): Charge {
    const policy = slot.current;
    return { policy, quota: policy, subject: this.#stored(subject), cost };
  }

  /**
   * The charges under each subject's own numbers. Synchronous where the resolver is.
   *
   * @param later what else is decided of this call, when more is known of it: if the resolver has to be asked about that,
   * it is not asked now
   */
  charges(
    requests: readonly ChargeRequest[],
    call?: CallContext,
    later: readonly Decided[] = [],
  ): MaybePromise<readonly Charge[]> {
    const resolver = this.#resolver;
    if (resolver === undefined) return requests.map((request) => this.plainCharge(request));
    const asked = requests.filter(this.#isConcerned);
    const put = later.find(this.#isConcerned);
    if (put !== undefined) this.#tellOfOwnNumbers(asked, put);
    if (asked.length === 0 || put !== undefined) return requests.map((request) => this.plainCharge(request));
    const charges = asked.map(({ slot, subject }) => ({ policy: slot.name, subject }));
    return andThen(resolver.resolve({ charges, call }), (overrides) => {
      requireParallel(overrides, asked.length);
      let next = 0;
      return requests.map((request) => {
        const charge = this.plainCharge(request);
        const override = request === asked[next] ? overrides?.[next++] : undefined;
        return override === undefined ? charge : { ...charge, quota: this.#quotaOf(charge.policy, override) };
      });
    });
  }

  readonly #isConcerned = ({ slot }: Decided): boolean => this.#concerned?.has(slot.name) ?? true;

  #tellOfOwnNumbers(decided: readonly Decided[], { slot: later }: Decided): void {
    for (const { slot } of decided) {
      if (this.#toldOf.has(slot)) continue;
      this.#toldOf.add(slot);
      this.#surroundings.report({
        code: 'RL_RESOLVER_NOT_ASKED',
        message:
          `policy '${slot.name}' goes by its own numbers: it is decided before the guards, and of such a call the ` +
          `resolver is asked once, after them, for policy '${later.name}'`,
      });
    }
  }

  #quotaOf(policy: Policy, override: QuotaOverride): Quota {
    let known = this.#known.get(policy);
    if (known === undefined) this.#known.set(policy, (known = new RecentCache(REMEMBERED_QUOTAS)));
    const key = keyOf(override);
    const found = key === undefined ? undefined : known.get(key);
    if (found !== undefined) return found;
    const quota = overriddenQuota(policy, override, this.#surroundings);
    if (key !== undefined) known.set(key, quota);
    return quota;
  }
}

const MEMBERS = ['limit', 'window', 'burst', 'maxDelay'] as const satisfies (keyof QuotaOverride)[];

/** What an override says, as text; `undefined` for one that says something else, which is looked at in full. */
function keyOf(override: QuotaOverride): string | undefined {
  if (typeof override !== 'object' || override === null) return undefined;
  if (Array.isArray(override) || override instanceof Map || isPromiseLike(override)) return undefined;
  for (const name in override) if (!MEMBERS.includes(name as keyof QuotaOverride)) return undefined;
  let key = '';
  for (const member of MEMBERS) {
    const value: unknown = override[member];
    if (value !== undefined && typeof value !== 'number' && typeof value !== 'string') return undefined;
    key += value === undefined ? '|' : typeof value === 'number' ? `${value}|` : `'${value}'|`;
  }
  return key;
}
