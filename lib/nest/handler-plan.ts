import type { Type } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import type { KeyPart, Policy } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';

/** One policy of a plan, with what the decorator changed about it. */
export interface PlannedPolicy {
  readonly slot: PolicySlot;
  readonly key: readonly KeyPart[] | undefined;
  readonly cost: Policy['cost'] | undefined;
  readonly skip: ((call: CallContext) => boolean | Promise<boolean>) | undefined;
}

/** What is checked when one handler runs: made once, when the application starts. */
export interface HandlerPlan {
  readonly handlerClass: Type;
  readonly methodName: string;
  readonly handler: Function;
  readonly policies: readonly PlannedPolicy[];
}

const DEFAULT_KEY: readonly KeyPart[] = ['ip'];

/** The key of a policy on a handler, as it is now. */
export function keyOf({ key, slot }: PlannedPolicy, policy: Policy = slot.current): readonly KeyPart[] {
  return key ?? policy.key ?? DEFAULT_KEY;
}

/** Whether a policy is decided after all guards, and not before them. */
export function decidedAtInterceptor(planned: PlannedPolicy, policy: Policy = planned.slot.current): boolean {
  if (policy.options.enforceAt !== undefined || planned.key === undefined)
    return policy.enforceAt === 'interceptor';
  return planned.key.includes('user');
}

/** Whether a policy may need the interceptor: to be decided there, or to see how the call ended. */
export function needsInterceptor(planned: PlannedPolicy, policy: Policy = planned.slot.current): boolean {
  const certain = (part: KeyPart) =>
    part === 'ip' || part === 'handler' || part === 'route' || part === 'global';
  return (
    decidedAtInterceptor(planned, policy) ||
    policy.countIf !== undefined ||
    !keyOf(planned, policy).every(certain)
  );
}
