import {
  subjectOf,
  type CallContext,
  type PolicyResolver,
  type QuotaOverride,
  type ResolverRequest,
} from 'nestjs-distlimit';

/** What a plan gives, in place of the policy's own numbers. */
const PLANS = {
  free: { limit: 10 },
  pro: { limit: 100 },
  enterprise: { limit: 1_000 },
} satisfies Record<string, QuotaOverride>;

/** Who has which key: here a list, elsewhere a database, which holds digests of the keys. */
const CUSTOMERS = new Map<string, { id: string; plan: keyof typeof PLANS }>([
  ['key-of-fred', { id: 'customer-fred', plan: 'free' }],
  ['key-of-pia', { id: 'customer-pia', plan: 'pro' }],
  ['key-of-emma', { id: 'customer-emma', plan: 'enterprise' }],
]);

/**
 * Known keys count for their customer. Others count for the address: who invents a new key for each call would else get
 * a new quota with it.
 */
export function customerOrAddress(call: CallContext): string | undefined {
  return CUSTOMERS.get(call.header('x-api-key') ?? '')?.id ?? call.ip;
}

/** Customers have the numbers of their plan, everybody else those of the policy. */
export class Plans implements PolicyResolver {
  readonly #quotas = new Map([...CUSTOMERS.values()].map(({ id, plan }) => [subjectOf.key(id), PLANS[plan]]));

  resolve({ charges }: ResolverRequest) {
    return charges.map(({ policy, subject }) => (policy === 'plan' ? this.#quotas.get(subject) : undefined));
  }
}
