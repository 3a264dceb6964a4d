import * as v from 'valibot';
import { defined } from '../core/defined.js';
import type { Policy } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';
import { costRule, keyRule, requireAffordable } from '../core/policy-completion.js';
import { callable, nameRule, rule, validate, wholeNumber } from '../core/validation.js';
import type { PlannedPolicy } from './handler-plan.js';
import type { CommonLimitOptions, PolicyReference } from './rate-limit-metadata.js';

const referenceSchema = v.strictObject({
  policy: nameRule,
  cost: v.optional(costRule),
  key: v.optional(keyRule),
  skip: v.optional(callable<NonNullable<Policy['skip']>>()),
});

const commonLimitSchema = v.strictObject({
  key: v.optional(callable<NonNullable<CommonLimitOptions['key']>>()),
  cost: v.optional(costRule),
  onLimited: v.optional(
    rule('RL_INVALID_OPTION', "'throw', 'skip', 'wait' or a function", (value) =>
      typeof value === 'function' || ['throw', 'skip', 'wait'].includes(value as string)
        ? (value as CommonLimitOptions['onLimited'])
        : undefined,
    ),
  ),
  maxWaitMs: v.optional(wholeNumber('RL_INVALID_DURATION', 0)),
});

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completeCommonLimit(options: CommonLimitOptions, where: string): CommonLimitOptions {
  const { key, cost, onLimited, maxWaitMs } = validate(commonLimitSchema, options, where);
  return defined({ key, cost: cost as CommonLimitOptions['cost'], onLimited, maxWaitMs });
}

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
