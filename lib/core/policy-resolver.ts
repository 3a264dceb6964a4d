import type { Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { MaybePromise } from './driver.js';
import type { Duration } from './duration.js';
import type { Policy, PolicyOptions } from './policy.js';
import { completePolicy, type PolicySurroundings } from './policy-completion.js';

/** What a resolver is asked: whose quota, under which policies. Subjects are raw, whatever the stores see. */
export interface ResolverRequest {
  readonly charges: readonly { readonly policy: string; readonly subject: string }[];
  /** The call, where there is one: the service's methods have none. */
  readonly call?: CallContext | undefined;
}

/** Numbers of one subject's own, in place of the policy's. */
export interface QuotaOverride {
  readonly limit?: number;
  readonly window?: Duration;
  readonly burst?: number;
  readonly maxDelay?: Duration;
}

/** Gives subjects quotas of their own: tiers, tenants. Policies it does not name keep their numbers. */
export interface PolicyResolver {
  resolve(request: ResolverRequest): MaybePromise<Readonly<Record<string, QuotaOverride>> | undefined>;
}

/** @throws RateLimitConfigError where the override is not a valid quota for the policy */
export function overrideQuota(
  policy: Policy,
  override: QuotaOverride | undefined,
  surroundings: PolicySurroundings,
): Quota {
  if (override === undefined) return policy;
  const { limit, window, burst, maxDelay } = override;
  // The static cost was checked against the policy; for a smaller quota it is denied, not an error.
  const options: PolicyOptions = { ...policy.options, cost: 1 };
  if (limit !== undefined) options.limit = limit;
  if (window !== undefined) options.window = window;
  if (burst !== undefined) options.burst = burst;
  if (maxDelay !== undefined) options.maxDelay = maxDelay;
  return completePolicy(policy.name, options, `resolver.${policy.name}`, surroundings);
}
