import type { PolicyResolver, QuotaOverride, ResolverRequest } from 'nestjs-distlimit';

/** What a plan gives, in place of the policy's own numbers. */
const PLANS: Record<string, QuotaOverride> = {
  pro: { limit: 50 },
  enterprise: { limit: 1_000 },
};

/** Which plan each tenant has: here a list, elsewhere a database. */
const TENANTS: Record<string, string> = { acme: 'enterprise', zenith: 'pro' };

/** Tenants on a plan have its numbers, others those of the policy. */
export class Plans implements PolicyResolver {
  async resolve({ charges }: ResolverRequest) {
    return charges.map(({ subject }) => PLANS[TENANTS[subject.replace('header:x-tenant:', '')] ?? '']);
  }
}
