import { RateLimitConfigError } from './errors.js';
import type { PolicySlot } from './policy-registry.js';
import { boundSubject, GLOBAL_SUBJECT } from './subject.js';

/** One charge, by the policy's place and the subject as callers know it. */
export interface ChargeRequest {
  readonly slot: PolicySlot;
  readonly subject: string;
  readonly cost: number;
}

/**
 * Completes what a caller asks for: the subject is `global` by default, the cost the policy's own.
 * @throws RateLimitConfigError where the subject is not text, or the cost is not a whole number ≥ 1
 */
export function chargeRequest(slot: PolicySlot, subject = GLOBAL_SUBJECT, cost?: number): ChargeRequest {
  requireSubject(slot.name, subject);
  const own = slot.current.cost;
  const units = cost ?? (typeof own === 'number' ? own : 1);
  return { slot, subject: boundSubject(subject), cost: requireCost(slot.name, units) };
}

function requireSubject(policy: string, subject: unknown): void {
  if (typeof subject === 'string' && subject !== '') return;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_SUBJECT',
    path: `${policy}.subject`,
    expected: 'text that is not empty',
    received: subject,
  });
}

/** @throws RateLimitConfigError where the cost is not a whole number ≥ 1 */
export function requireCost(policy: string, cost: unknown): number {
  if (Number.isSafeInteger(cost) && (cost as number) >= 1) return cost as number;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_COST',
    path: `${policy}.cost`,
    expected: 'a whole number ≥ 1',
    received: cost,
  });
}
