import * as v from 'valibot';
import type { Policy } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';
import { costRule, keyRule, requireAffordable } from '../core/policy-completion.js';
import { callable, nameRule, validate } from '../core/validation.js';
import type { PlannedPolicy } from './handler-plan.js';
import type { PolicyReference } from './rate-limit-metadata.js';

const referenceSchema = v.strictObject({
  policy: nameRule,
  cost: v.optional(costRule),
  key: v.optional(keyRule),
  skip: v.optional(callable<NonNullable<Policy['skip']>>()),
});

/** Checks what a decorator changes about a named policy. */
export function completeReference(
  reference: PolicyReference,
  slot: PolicySlot,
  where: string,
): Pick<PlannedPolicy, 'key' | 'cost' | 'skip'> {
  const { cost, key, skip } = validate(referenceSchema, reference, where);
  if (typeof cost === 'number') requireAffordable(cost, slot.current, `${where}.cost`);
  return { cost, key, skip };
}
