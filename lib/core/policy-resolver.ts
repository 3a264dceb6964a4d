import * as v from 'valibot';
import type { Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { Duration } from './duration.js';
import { RateLimitConfigError } from './errors.js';
import { isPromiseLike, type MaybePromise } from './maybe-promise.js';
import type { Policy } from './policy.js';
import {
  completeQuota,
  quotaRules,
  reportIneffective,
  type PolicySurroundings,
} from './policy-completion.js';
import { validate } from './validation.js';

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

/** Gives subjects quotas of their own: tiers, tenants. */
export interface PolicyResolver {
  /** The names of the policies that it may have numbers for; default all. It is asked about no others. */
  readonly concerns?: readonly string[] | undefined;
  /**
   * Asked once for a call at most: where everything that it concerns is decided in the guard, there; else after the
   * guards, about what is decided then.
   *
   * One answer for each charge, in the order of `charges`: `undefined` keeps the policy's numbers. `undefined` in
   * place of the array keeps them for all.
   */
  resolve(request: ResolverRequest): MaybePromise<readonly (QuotaOverride | undefined)[] | undefined>;
}

const overrideSchema = v.strictObject({
  ...quotaRules,
  limit: v.optional(quotaRules.limit),
  window: v.optional(quotaRules.window),
});

/**
 * The policy's numbers with those of a resolver in place of some.
 * @throws RateLimitConfigError where that is no quota for the policy
 */
export function overriddenQuota(
  policy: Policy,
  override: QuotaOverride,
  { report }: PolicySurroundings,
): Quota {
  const path = `resolver.${policy.name}`;
  requireNumbers(override, path);
  const given = validate(overrideSchema, override, path);
  reportIneffective(given, policy.arithmetic, path, report);
  const own = validate(ownNumbers, policy.options, path);
  return Object.freeze(
    completeQuota(
      {
        limit: given.limit ?? policy.limit,
        window: given.window ?? policy.windowMs,
        burst: given.burst ?? own.burst,
        maxDelay: given.maxDelay ?? own.maxDelay,
      },
      policy.arithmetic,
      path,
    ),
  );
}

/** An object without any of the names would quietly change nothing. @throws RateLimitConfigError */
function requireNumbers(override: unknown, path: string): void {
  if (!Array.isArray(override) && !isPromiseLike(override) && !(override instanceof Map)) return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_ANSWER',
    path,
    expected:
      'an object with limit, window, burst or maxDelay, not a promise of one: resolve() itself may be async',
    received: override,
  });
}

/** What the policy itself names: a burst that it leaves to the algorithm follows the subject's limit. */
const ownNumbers = v.object({ burst: quotaRules.burst, maxDelay: quotaRules.maxDelay });

/** @throws RateLimitConfigError where the names of policies are something else */
export function requireConcerns(concerns: unknown): void {
  if (concerns === undefined || (Array.isArray(concerns) && concerns.every((c) => typeof c === 'string')))
    return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: 'resolver.concerns',
    expected: 'undefined, or an array of policy names',
    received: concerns,
  });
}

/** @throws RateLimitConfigError where a resolver's answer can't be assigned to the charges */
export function requireParallel(overrides: unknown, count: number): void {
  if (overrides === undefined || (Array.isArray(overrides) && overrides.length === count)) return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: 'resolver.resolve()',
    expected: `undefined, or an array of ${count}: an override or undefined for each charge`,
    received: overrides,
  });
}
