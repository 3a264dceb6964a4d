import type { Type } from '@nestjs/common';
import { RateLimitConfigError } from '../core/errors.js';
import type { PolicyOptions } from '../core/policy.js';
import type { PolicyRegistry, PolicySlot } from '../core/policy-registry.js';
import { needsInterceptor, type HandlerPlan, type PlannedPolicy } from './handler-plan.js';
import { rateLimitMetadata, type PolicyReference, type RateLimitUse } from './rate-limit-metadata.js';
import { completeReference } from './rate-limit-use.js';

type Handler = Function;

/** What `bind` puts before a function's name. */
const BOUND = /^(bound )+/;

/** An inline policy of a plan in the making: registered when the plan is kept. */
interface Draft {
  readonly slot: PolicySlot;
  readonly use: PolicyOptions;
  readonly where: string;
}

/** Compiles and keeps the plans of an application's handlers. */
export class HandlerPlans {
  readonly #registry: PolicyRegistry;
  readonly #global: readonly string[];
  /** Whether the interceptor is bound wherever the guard is. */
  interceptorBound = true;
  readonly #plans = new Map<Handler, HandlerPlan[]>();
  /** For handlers that an instance has put in the place of its class's method: each request may bring a new one. */
  readonly #byName = new Map<Type, Map<string, HandlerPlan>>();
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
    const methodName = handler.name.replace(BOUND, '');
    return (
      this.#byName.get(handlerClass)?.get(methodName) ?? this.compile('', handlerClass, methodName, handler)
    );
  }

  all(): readonly HandlerPlan[] {
    return [...this.#plans.values()].flat();
  }

  /** @throws RateLimitConfigError where a decorator is wrong */
  compile(moduleName: string, handlerClass: Type, methodName: string, handler: Handler): HandlerPlan {
    const known = this.#plans.get(handler)?.find((plan) => plan.handlerClass === handlerClass);
    if (known !== undefined) return known;
    const drafts: Draft[] = [];
    const policies = this.#policiesOf(moduleName, handlerClass, methodName, handler, drafts);
    const plan: HandlerPlan = { handlerClass, methodName, handler, policies };
    // A plan that is refused must leave nothing behind: the next call would find it, and pass.
    if (!this.interceptorBound) requireNoInterceptor(plan);
    this.#keep(drafts);
    const plans = this.#plans.get(handler);
    if (plans === undefined) this.#plans.set(handler, [plan]);
    else plans.push(plan);
    const named = this.#byName.get(handlerClass);
    if (named === undefined) this.#byName.set(handlerClass, new Map([[methodName, plan]]));
    else named.set(methodName, plan);
    return plan;
  }

  /** The slot of what a decorator names, or of the inline policy that it holds. */
  slotOf(use: RateLimitUse, where: string, inlineName: string): PolicySlot {
    const drafts: Draft[] = [];
    const slot = this.#draft(use, where, inlineName, drafts);
    this.#keep(drafts);
    return slot;
  }

  #draft(use: RateLimitUse, where: string, inlineName: string, drafts: Draft[]): PolicySlot {
    if (typeof use === 'string') return this.#registry.slot(use, where);
    if (isReference(use)) return this.#registry.slot(use.policy, where);
    const known =
      this.#namedInline.get(use) ?? drafts.find((draft) => draft.use === use && use.name !== undefined)?.slot;
    if (known !== undefined) return known;
    const slot = this.#registry.draft(use.name ?? this.#freeName(inlineName), use, where);
    drafts.push({ slot, use, where });
    return slot;
  }

  #keep(drafts: Draft[]): void {
    for (const { slot, use, where } of drafts) {
      this.#registry.add(slot, where);
      if (use.name !== undefined) this.#namedInline.set(use, slot);
    }
  }

  #policiesOf(
    moduleName: string,
    handlerClass: Type,
    methodName: string,
    handler: Handler,
    drafts: Draft[],
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
      const slot = this.#draft(use, where, `${inlineName}${suffix}`, drafts);
      if (skips.some((names) => names.includes(slot.name))) return;
      const { key, cost, skip } = isReference(use) ? completeReference(use, slot, where) : NO_CHANGES;
      planned.set(slot.name, { slot, key, cost, skip });
    };

    for (const name of this.#global) add(name, 0, [skipsOfClass, skipsOfMethod]);
    if (own !== undefined) own.forEach((use, index) => add(use, index, [skipsOfMethod]));
    else inherited?.forEach((use, index) => add(use, index, [skipsOfClass, skipsOfMethod]));
    this.#checkSkips(skipsOfMethod, place, drafts);
    this.#checkSkips(skipsOfClass, handlerClass.name, drafts);
    return [...planned.values()];
  }

  #checkSkips(skips: readonly string[] | 'all', place: string, drafts: Draft[]): void {
    if (skips === 'all') return;
    for (const name of skips) {
      if (!drafts.some(({ slot }) => slot.name === name))
        this.#registry.slot(name, `@SkipRateLimit() on ${place}`);
    }
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
