import * as v from 'valibot';
import type { Algorithm, Quota } from './algorithm.js';
import { algorithmRule, defaultBurstOf, requireCountable } from './algorithm-rule.js';
import { defined } from './defined.js';
import type { DiagnosticSink } from './diagnostics.js';
import { RateLimitConfigError } from './errors.js';
import type { KeyPart, Policy, PolicyOptions } from './policy.js';
import {
  callable,
  duration,
  nameRule,
  oneOf,
  parseWhole,
  rule,
  validate,
  wholeNumber,
} from './validation.js';

const HEADER_KEY = /^header:[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const KEY_EXPECTED =
  "'ip', 'user', 'handler', 'route', 'global', 'header:<name>', a function, or a non-empty array of these";

export const keyRule = rule('RL_INVALID_KEY', KEY_EXPECTED, (value): readonly KeyPart[] | undefined => {
  const parts: readonly unknown[] = Array.isArray(value) ? value : [value];
  return parts.length > 0 && parts.every(isKeyPart) ? Object.freeze(parts.map(canonicalPart)) : undefined;
});

function isKeyPart(part: unknown): part is KeyPart {
  if (typeof part === 'function') return true;
  if (typeof part !== 'string') return false;
  return ['ip', 'user', 'handler', 'route', 'global'].includes(part) || HEADER_KEY.test(part);
}

function canonicalPart(part: KeyPart): KeyPart {
  return typeof part === 'string' ? (part.toLowerCase() as KeyPart) : part;
}

export const costRule = rule('RL_INVALID_COST', 'a whole number ≥ 1, or a function', (value) =>
  typeof value === 'function' ? (value as Policy['cost']) : parseWhole(value, 1),
);

/** The numbers that a policy, or a subject of its own, is counted by. */
export const quotaRules = {
  limit: wholeNumber('RL_INVALID_LIMIT', 0),
  window: duration(1),
  burst: v.optional(wholeNumber('RL_INVALID_BURST', 1)),
  maxDelay: v.optional(duration(0)),
};

const policyOptionsSchema = v.strictObject({
  name: v.optional(nameRule),
  ...quotaRules,
  algorithm: v.optional(algorithmRule, 'sliding-window-counter'),
  key: v.optional(keyRule),
  cost: v.optional(costRule, 1),
  block: v.optional(duration(0), 0),
  mode: v.optional(oneOf(['enforce', 'shadow']), 'enforce'),
  enforceAt: v.optional(oneOf(['guard', 'interceptor'])),
  countIf: v.optional(callable<NonNullable<PolicyOptions['countIf']>>()),
  skip: v.optional(callable<NonNullable<PolicyOptions['skip']>>()),
  onUnavailable: v.optional(oneOf(['fallback', 'allow', 'deny', 'throw']), 'fallback'),
});

const policyPatchSchema = v.partial(v.omit(policyOptionsSchema, ['name']));

/** The options that a source can give: all but the name, which is that of the entry. */
export const POLICY_FIELDS = Object.keys(policyPatchSchema.entries) as readonly (keyof PolicyOptions)[];

/**
 * Checks some options of a policy one by one; whether they go together is seen when the policy is complete.
 * @returns a copy of them, without those that are `undefined`
 * @throws RateLimitConfigError for the first thing that is wrong
 */
export function checkPatch(patch: unknown, path: string): Readonly<Partial<PolicyOptions>> {
  validate(policyPatchSchema, patch, path);
  return ownCopy(defined(patch as Partial<PolicyOptions>));
}

/** What completing a policy needs to know of its surroundings. */
export interface PolicySurroundings {
  readonly algorithms: Readonly<Record<string, Algorithm>>;
  readonly report: DiagnosticSink;
}

/**
 * Checks the options of a policy and completes them.
 * @throws RateLimitConfigError with the path below `path` of what is wrong
 */
export function completePolicy(
  name: string,
  options: Readonly<Partial<PolicyOptions>>,
  path: string,
  { algorithms, report }: PolicySurroundings,
): Policy {
  const given = validate(policyOptionsSchema, options, path);
  const arithmetic = typeof given.algorithm === 'string' ? algorithms[given.algorithm] : given.algorithm;
  if (
    arithmetic === undefined ||
    !(typeof given.algorithm !== 'string' || Object.hasOwn(algorithms, given.algorithm))
  ) {
    throw new RateLimitConfigError({
      code: 'RL_UNKNOWN_ALGORITHM',
      path: `${path}.algorithm`,
      expected: `one of ${Object.keys(algorithms).join(', ')}, or an Algorithm`,
      received: given.algorithm,
    });
  }
  reportIneffective(given, arithmetic, path, report);
  const quota = completeQuota(given, arithmetic, path);
  if (typeof given.cost === 'number') requireAffordable(given.cost, { arithmetic, ...quota }, `${path}.cost`);
  return Object.freeze({
    name,
    ...quota,
    algorithm: arithmetic.name,
    arithmetic,
    key: given.key,
    cost: given.cost,
    blockMs: given.block,
    mode: given.mode,
    enforceAt: given.enforceAt ?? (given.key?.includes('user') ? 'interceptor' : 'guard'),
    countIf: given.countIf,
    skip: given.skip,
    onUnavailable: given.onUnavailable,
    options: ownCopy(options as PolicyOptions),
  });
}

/** A copy that nobody else can change: policies are patched from it long after they were made. */
export function ownCopy<T extends Partial<PolicyOptions>>(options: T): Readonly<T> {
  const { key } = options;
  return Object.freeze(Array.isArray(key) ? { ...options, key: [...key] } : { ...options });
}

/** Numbers that were checked one by one, and may still not go together. */
export interface CheckedNumbers {
  readonly limit: number;
  readonly window: number;
  readonly burst?: number | undefined;
  readonly maxDelay?: number | undefined;
}

/** @throws RateLimitConfigError where nothing can be counted by these numbers */
export function completeQuota(given: CheckedNumbers, algorithm: Algorithm, path: string): Quota {
  const { limit, window: windowMs } = given;
  const burst = given.burst ?? defaultBurstOf(algorithm, limit, windowMs, path);
  const most = Math.max(limit, burst, 1);
  if (2 * most * windowMs > Number.MAX_SAFE_INTEGER) {
    throw new RateLimitConfigError({
      code: 'RL_QUOTA_TOO_LARGE',
      path,
      expected: '2 × max(limit, burst) × window below 2^53, in milliseconds',
      received: `${most} × ${windowMs}ms`,
    });
  }
  const quota = { limit, windowMs, burst, maxDelayMs: given.maxDelay ?? Infinity };
  requireCountable(algorithm, quota, path);
  return quota;
}

/** Reports what is given and means nothing to the algorithm. */
export function reportIneffective(
  given: Partial<CheckedNumbers>,
  algorithm: Algorithm,
  path: string,
  report: DiagnosticSink,
): void {
  for (const option of ['burst', 'maxDelay'] as const) {
    if (given[option] === undefined || algorithm.uses.includes(option)) continue;
    report({
      code: 'RL_OPTION_HAS_NO_EFFECT',
      message: `${path}.${option} has no effect with the algorithm '${algorithm.name}'`,
    });
  }
}

/** @throws RateLimitConfigError where a fixed cost could never be admitted; a limit of 0 means that on purpose */
export function requireAffordable(
  cost: number,
  policy: Quota & { readonly arithmetic: Algorithm },
  path: string,
): void {
  const capacity = policy.arithmetic.capacity(policy);
  if (policy.limit === 0 || cost <= capacity) return;
  throw new RateLimitConfigError({
    code: 'RL_COST_OVER_CAPACITY',
    path,
    expected: `at most ${capacity}, what the policy can ever admit at once`,
    received: cost,
  });
}
