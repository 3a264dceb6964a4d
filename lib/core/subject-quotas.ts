import type { Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { ChargeRequest } from './charge-request.js';
import type { Charge } from './driver.js';
import { andThen, type MaybePromise } from './maybe-promise.js';
import type { Policy } from './policy.js';
import type { PolicySurroundings } from './policy-completion.js';
import {
  overriddenQuota,
  requireParallel,
  type PolicyResolver,
  type QuotaOverride,
} from './policy-resolver.js';
import { RecentCache } from './recent-cache.js';

/** How many quotas are remembered for a policy, in each of two generations: as many tiers as anybody has. */
const REMEMBERED_QUOTAS = 256;

/** Makes of requests what a driver is given: subjects as stores see them, quotas as the resolver says. */
export class SubjectQuotas {
  readonly #surroundings: PolicySurroundings;
  readonly #stored: (subject: string) => string;
  /** One object for each quota: drivers keep what follows from a quota by its identity. */
  readonly #known = new WeakMap<Policy, RecentCache<Quota>>();
  resolver: PolicyResolver | undefined;

  /** @param stored the subject as stores see it */
  constructor(surroundings: PolicySurroundings, stored: (subject: string) => string) {
    this.#surroundings = surroundings;
    this.#stored = stored;
  }

  /** The charge under the policy's own numbers. */
  plainCharge({ slot, subject, cost }: ChargeRequest): Charge {
    const policy = slot.current;
    return { policy, quota: policy, subject: this.#stored(subject), cost };
  }

  /** The charges under each subject's own numbers. Synchronous where the resolver is. */
  charges(requests: readonly ChargeRequest[], call?: CallContext): MaybePromise<readonly Charge[]> {
    if (this.resolver === undefined) return requests.map((request) => this.plainCharge(request));
    const asked = requests.map(({ slot, subject }) => ({ policy: slot.name, subject }));
    return andThen(this.resolver.resolve({ charges: asked, call }), (overrides) => {
      requireParallel(overrides, requests.length);
      return requests.map((request, i) => {
        const charge = this.plainCharge(request);
        const override = overrides?.[i];
        return override === undefined ? charge : { ...charge, quota: this.#quotaOf(charge.policy, override) };
      });
    });
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
  for (const name in override) if (!MEMBERS.includes(name as keyof QuotaOverride)) return undefined;
  let key = '';
  for (const member of MEMBERS) {
    const value: unknown = override[member];
    if (value !== undefined && typeof value !== 'number' && typeof value !== 'string') return undefined;
    key += value === undefined ? '|' : typeof value === 'number' ? `${value}|` : `'${value}'|`;
  }
  return key;
}
