import type { Type } from '@nestjs/common';
import { RateLimitConfigError } from '../core/errors.js';
import type { PolicyRegistry, PolicySlot } from '../core/policy-registry.js';
import { needsInterceptor, type HandlerPlan, type PlannedPolicy } from './handler-plan.js';
import { rateLimitMetadata, type PolicyReference, type RateLimitUse } from './rate-limit-metadata.js';
import { completeReference } from './rate-limit-use.js';

type Handler = Function;

/** Compiles and keeps the plans of an application's handlers. */
export class HandlerPlans {
  readonly #registry: PolicyRegistry;
  readonly #global: readonly string[];
  /** Whether the interceptor is bound wherever the guard is. */
  interceptorBound = true;
  readonly #plans = new Map<Handler, HandlerPlan[]>();
  /** Inline policies with a name of their own: one for each options object, wherever that is used. */
  readonly #namedInline = new Map<object, PolicySlot>();

  constructor(registry: PolicyRegistry, global: readonly string[]) {
    this.#registry = registry;
    this.#global = global;
    for (const name of global) registry.slot(name, 'global');
  }

  /** The plan of a handler; one that start-up did not see (a lazily loaded module) is compiled on first use. */
  of(handlerClass: Type, handler: Handler): HandlerPlan {
    const plans = this.#plans.get(handler);
    if (plans !== undefined) {
      for (const plan of plans) if (plan.handlerClass === handlerClass) return plan;
    }
    const plan = this.compile('', handlerClass, handler.name, handler);
    if (!this.interceptorBound) requireNoInterceptor(plan);
    return plan;
  }

  all(): readonly HandlerPlan[] {
    return [...this.#plans.values()].flat();
  }

  /** @throws RateLimitConfigError where a decorator is wrong */
  compile(moduleName: string, handlerClass: Type, methodName: string, handler: Handler): HandlerPlan {
    const known = this.#plans.get(handler)?.find((plan) => plan.handlerClass === handlerClass);
    if (known !== undefined) return known;
    const plan: HandlerPlan = {
      handlerClass,
      methodName,
      handler,
      policies: this.#policiesOf(moduleName, handlerClass, methodName, handler),
    };
    const plans = this.#plans.get(handler);
    if (plans === undefined) this.#plans.set(handler, [plan]);
    else plans.push(plan);
    return plan;
  }

  /** The slot of what a decorator names, or of the inline policy that it holds. */
  slotOf(use: RateLimitUse, where: string, inlineName: string): PolicySlot {
    if (typeof use === 'string') return this.#registry.slot(use, where);
    if (isReference(use)) return this.#registry.slot(use.policy, where);
    if (use.name === undefined) return this.#registry.define(this.#freeName(inlineName), use, where);
    let slot = this.#namedInline.get(use);
    if (slot === undefined) {
      slot = this.#registry.define(use.name, use, where);
      this.#namedInline.set(use, slot);
    }
    return slot;
  }

  #policiesOf(
    moduleName: string,
    handlerClass: Type,
    methodName: string,
    handler: Handler,
  ): readonly PlannedPolicy[] {
    const own = rateLimitMetadata.usesOf(handler);
    const inherited = rateLimitMetadata.usesOf(handlerClass);
    const skipsOfClass = rateLimitMetadata.skipsOf(handlerClass);
    const skipsOfMethod = rateLimitMetadata.skipsOf(handler);
    const place = `${handlerClass.name}.${methodName}`;
    const inlineName = moduleName === '' ? place : `${moduleName}.${place}`;

    const planned = new Map<string, PlannedPolicy>();
    const add = (use: RateLimitUse, index: number, skips: readonly (readonly string[] | 'all')[]) => {
      const where = `@RateLimit() on ${place}`;
      if (skips.includes('all')) return;
      const suffix = index === 0 ? '' : `#${index + 1}`;
      const slot = this.slotOf(use, where, `${inlineName}${suffix}`);
      if (skips.some((names) => names.includes(slot.name))) return;
      const { key, cost, skip } = isReference(use) ? completeReference(use, slot, where) : NO_CHANGES;
      planned.set(slot.name, { slot, key, cost, skip });
    };

    for (const name of this.#global) add(name, 0, [skipsOfClass, skipsOfMethod]);
    if (own !== undefined) own.forEach((use, index) => add(use, index, [skipsOfMethod]));
    else inherited?.forEach((use, index) => add(use, index, [skipsOfClass, skipsOfMethod]));
    this.#checkSkips(skipsOfMethod, place);
    this.#checkSkips(skipsOfClass, handlerClass.name);
    return [...planned.values()];
  }

  #checkSkips(skips: readonly string[] | 'all', place: string): void {
    if (skips === 'all') return;
    for (const name of skips) this.#registry.slot(name, `@SkipRateLimit() on ${place}`);
  }

  /** Two classes may have one name, in one module or in two of one name: the later one gets a number. */
  #freeName(name: string): string {
    if (!this.#registry.has(name)) return name;
    for (let n = 2; ; n++) {
      if (!this.#registry.has(`${name}~${n}`)) return `${name}~${n}`;
    }
  }
}

const NO_CHANGES = { key: undefined, cost: undefined, skip: undefined };

/** @throws RateLimitConfigError where a decorator was given something else entirely */
function isReference(use: RateLimitUse): use is PolicyReference {
  if (typeof use === 'object' && use !== null) return Object.hasOwn(use, 'policy');
  if (typeof use === 'string') return false;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: '@RateLimit()',
    expected: 'the name of a policy, policy options, or { policy, cost, key, skip }',
    received: use,
  });
}

/** A handler that start-up did not see can't be decided after the guards, where no interceptor is bound. */
function requireNoInterceptor({ handlerClass, methodName, policies }: HandlerPlan): void {
  const needing = policies.find((planned) => needsInterceptor(planned));
  if (needing === undefined) return;
  throw new RateLimitConfigError({
    code: 'RL_INTERCEPTOR_REQUIRED',
    path: `@RateLimit() on ${handlerClass.name}.${methodName}, in a module that was loaded later`,
    expected:
      'policies decided at the guard: when the application started, no handler needed the interceptor',
    received: needing.slot.name,
  });
}
