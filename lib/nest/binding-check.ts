import type { ApplicationConfig } from '@nestjs/core';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { RateLimitConfigError } from '../core/errors.js';
import type { Policy } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';
import type { FoundMethod } from './method-explorer.js';
import { needsInterceptor, type HandlerPlan } from './handler-plan.js';
import { NEST_METADATA } from './nest-metadata.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';

/**
 * Reports handlers whose policies nobody would check, because guard or interceptor is bound nowhere.
 * @param getsGlobal whether Nest gives a handler what is bound globally
 */
export function reportUnboundHandlers(
  plans: readonly HandlerPlan[],
  config: ApplicationConfig,
  report: DiagnosticSink,
  getsGlobal: (plan: HandlerPlan) => boolean,
): void {
  const limited = plans.filter(({ policies }) => policies.length > 0);
  const guardIsGlobal = config.getGlobalGuards().some((guard) => guard instanceof RateLimitGuard);
  const unguarded = limited.filter(
    (plan) => !(guardIsGlobal && getsGlobal(plan)) && !isBound(plan, NEST_METADATA.guards, RateLimitGuard),
  );
  if (unguarded.length > 0) {
    report({
      code: 'RL_GUARD_NOT_BOUND',
      message: `no RateLimitGuard is bound to ${named(unguarded)}: their limits are not checked`,
    });
  }
  const unintercepted = limited.filter(
    (plan) =>
      plan.policies.some((planned) => needsInterceptor(planned)) && !isIntercepted(plan, config, getsGlobal),
  );
  if (unintercepted.length === 0) return;
  report({
    code: 'RL_INTERCEPTOR_REQUIRED',
    message:
      `no RateLimitInterceptor is bound to ${named(unintercepted)}: ` +
      'policies decided after the guards are not checked',
  });
}

/** Reports methods with `@RateLimit()` that are no handlers: it works on what a guard sees. */
export function reportStrayMethods(methods: Iterable<FoundMethod>, report: DiagnosticSink): void {
  for (const { hostClass, methodName } of methods) {
    report({
      code: 'RL_GUARD_NOT_BOUND',
      message: `@RateLimit() on ${hostClass.name}.${methodName} has no effect: it is no handler, so no guard sees it; use @CommonLimit() there`,
    });
  }
}

/**
 * Routes are made once: a policy can't start to need the interceptor on a handler that has none.
 * @param getsGlobal whether Nest gives a handler what is bound globally
 * @throws RateLimitConfigError with `RL_INTERCEPTOR_REQUIRED`
 */
export function refuseWithoutInterceptor(
  plans: readonly HandlerPlan[],
  config: ApplicationConfig,
  slot: PolicySlot,
  candidate: Policy,
  getsGlobal: (plan: HandlerPlan) => boolean,
): void {
  const unintercepted = plans.filter(
    (plan) =>
      plan.policies.some((planned) => planned.slot === slot && needsInterceptor(planned, candidate)) &&
      !isIntercepted(plan, config, getsGlobal),
  );
  if (unintercepted.length === 0) return;
  throw new RateLimitConfigError({
    code: 'RL_INTERCEPTOR_REQUIRED',
    path: `policies.${slot.name}`,
    expected:
      'no key that may be undefined, no countIf and no enforceAt: ' +
      `no RateLimitInterceptor was bound to ${named(unintercepted)} at start-up`,
    received: candidate.countIf ?? candidate.options.enforceAt ?? candidate.options.key,
  });
}

/** Whether the interceptor runs for a handler: bound globally, to its class or to itself. */
function isIntercepted(
  plan: HandlerPlan,
  config: ApplicationConfig,
  getsGlobal: (plan: HandlerPlan) => boolean,
): boolean {
  const isGlobal = config.getGlobalInterceptors().some((i) => i instanceof RateLimitInterceptor);
  return (isGlobal && getsGlobal(plan)) || isBound(plan, NEST_METADATA.interceptors, RateLimitInterceptor);
}

/** Whether a handler is for messages of sockets. */
export function isOfGateway({ handler }: HandlerPlan): boolean {
  return Reflect.hasMetadata(NEST_METADATA.event, handler);
}

/** Whether a handler is for messages of microservices. */
export function isOfMessages({ handler }: HandlerPlan): boolean {
  return Reflect.hasMetadata(NEST_METADATA.pattern, handler);
}

function isBound({ handlerClass, handler }: HandlerPlan, key: string, wanted: unknown): boolean {
  return [handlerClass, handler].some((target) => {
    const bound = (Reflect.getMetadata(key, target) as readonly unknown[] | undefined) ?? [];
    return bound.some((item) => item === wanted || (item as object | null)?.constructor === wanted);
  });
}

function named(plans: readonly HandlerPlan[]): string {
  return plans.map(({ handlerClass, methodName }) => `${handlerClass.name}.${methodName}`).join(', ');
}
