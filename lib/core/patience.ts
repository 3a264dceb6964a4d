import type { Quota } from './algorithm.js';
import type { Charge, Decision } from './driver.js';
import type { Policy } from './policy.js';

const WITHOUT_BLOCK = new WeakMap<Policy, Policy>();
const WITHOUT_DELAY = new WeakMap<Quota, Quota>();

/**
 * The charge of a caller that is held at most `patienceMs`: one that would be held longer is denied, and takes no
 * place. Such a denial is not the policy's own, so it starts no block; {@link startsBlock} says what becomes of that.
 * The charge itself where the caller has more patience than the policy.
 */
export function heldAtMost(charge: Charge, patienceMs: number): Charge {
  const { policy, quota } = charge;
  if (!canDelay(policy) || quota.maxDelayMs <= patienceMs) return charge;
  return { ...charge, policy: withoutBlock(policy), quota: limitedDelay(quota, patienceMs) };
}

/** Whether the policy may hold calls at all. */
export function canDelay({ arithmetic }: Policy): boolean {
  return arithmetic.uses.includes('maxDelay');
}

/**
 * Whether the denial of a hurried charge may be the policy's own, and would start its block then. It is not where there
 * is room: then only the wait was too long for the caller.
 */
export function startsBlock(charge: Charge, denial: Decision, patienceMs: number): boolean {
  const { policy, quota, cost } = charge;
  if (denial.allowed || policy.blockMs === 0 || policy.mode === 'shadow') return false;
  return denial.remaining < cost || denial.retryAfterMs + patienceMs > quota.maxDelayMs;
}

/**
 * A group that answers for the charge, and starts its block where it is denied, but can't take anything: the other
 * charge of the group is one of the same counter that is always denied.
 */
export function withoutTaking(charge: Charge): readonly Charge[] {
  const never = { ...charge, policy: withoutBlock(charge.policy), quota: { ...charge.quota, limit: 0 } };
  return [charge, never];
}

function withoutBlock(policy: Policy): Policy {
  if (policy.blockMs === 0) return policy;
  let view = WITHOUT_BLOCK.get(policy);
  if (view === undefined) WITHOUT_BLOCK.set(policy, (view = Object.freeze({ ...policy, blockMs: 0 })));
  return view;
}

/** Kept for those who don't wait at all: drivers keep what follows from a quota by its identity. */
function limitedDelay(quota: Quota, maxDelayMs: number): Quota {
  if (maxDelayMs > 0) return { ...quota, maxDelayMs };
  let limited = WITHOUT_DELAY.get(quota);
  if (limited === undefined) WITHOUT_DELAY.set(quota, (limited = Object.freeze({ ...quota, maxDelayMs: 0 })));
  return limited;
}
