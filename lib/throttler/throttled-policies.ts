import type { LimiterEngine } from '../core/limiter-engine.js';
import type { PolicyOptions } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';
import { RecentCache } from '../core/recent-cache.js';

/** What a throttler asks for with each hit. Times are milliseconds. */
export interface ThrottlerQuota {
  readonly name: string;
  readonly limit: number;
  readonly ttl: number;
  readonly blockDuration: number;
}

/** Of each throttler, in each of two generations. Limits may be functions of a request: there can be any number. */
const REMEMBERED_QUOTAS = 256;

/**
 * The policies of throttlers, which come with each hit. All quotas of one throttler count in one place: what was used is
 * kept where a request is given another limit.
 */
export class ThrottledPolicies {
  readonly #engine: LimiterEngine;
  readonly #shared: Partial<PolicyOptions>;
  readonly #known = new Map<string, RecentCache<PolicySlot>>();

  /** @param shared what all of them have in common */
  constructor(engine: LimiterEngine, shared: Partial<PolicyOptions>) {
    this.#engine = engine;
    this.#shared = shared;
  }

  /** @throws RateLimitConfigError where a throttler's numbers are no quota */
  of(quota: ThrottlerQuota): PolicySlot {
    const { name, limit, ttl, blockDuration } = quota;
    let known = this.#known.get(name);
    if (known === undefined) this.#known.set(name, (known = new RecentCache(REMEMBERED_QUOTAS)));
    const key = `${limit} ${ttl} ${blockDuration}`;
    let slot = known.get(key);
    if (slot === undefined) {
      const options = {
        ...this.#shared,
        // Limits and times of throttlers may be fractions: a hit is denied when there were more than `limit`.
        limit: Math.floor(limit),
        window: Math.max(1, Math.ceil(ttl)),
        ...(blockDuration > 0 && { block: Math.ceil(blockDuration) }),
      };
      slot = this.#engine.draft(`throttler:${name}`, options, `throttler '${name}'`);
      known.set(key, slot);
    }
    return slot;
  }
}
