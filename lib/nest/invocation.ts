import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import type { CallOutcome } from '../core/policy.js';
import type { Verdict } from '../core/verdict.js';
import type { HandlerPlan, PlannedPolicy } from './handler-plan.js';

/** One run of one handler, as guard and interceptor share it. */
export interface Invocation {
  readonly handler: unknown;
  readonly plan: HandlerPlan;
  readonly call: CallContext;
  /** What was decided so far, in the order of the plan's phases. */
  readonly verdicts: Verdict[];
  /** Policies that the guard left to the interceptor. */
  deferred: PlannedPolicy[];
  /** Whether the guard, and then the interceptor, has been here: they may be bound more than once. */
  guarded: boolean;
  intercepted: boolean;
  /** Whether the end of the call is waited for, for `countIf`. */
  awaited: boolean;
  /** What the handler came to, as far as the interceptor saw it. */
  ended: CallOutcome;
  /** Another handler that ran for the same request. */
  readonly next: Invocation | undefined;
}

const INVOCATIONS = Symbol('nestjs-distlimit invocations');

const NOT_ENDED: CallOutcome = {};

type Carrier = { [INVOCATIONS]?: Invocation };

/**
 * The invocation of a context. Guard and interceptor get different contexts and argument arrays; what they share is
 * the request and the handler. A property of the request is several times cheaper than a `WeakMap`.
 */
export function invocationOf(context: ExecutionContext): Invocation | undefined {
  if (context.getType() !== 'http') return undefined;
  const request = context.switchToHttp().getRequest<Carrier | undefined>();
  const handler = context.getHandler();
  let invocation = request?.[INVOCATIONS];
  while (invocation !== undefined && invocation.handler !== handler) invocation = invocation.next;
  return invocation;
}

/** Starts the invocation of a context that has none yet. */
export function startInvocation(context: ExecutionContext, plan: HandlerPlan, call: CallContext): Invocation {
  const carrier = context.getType() === 'http' ? context.switchToHttp().getRequest<Carrier>() : undefined;
  const invocation: Invocation = {
    handler: context.getHandler(),
    plan,
    call,
    verdicts: [],
    deferred: [],
    guarded: false,
    intercepted: false,
    awaited: false,
    ended: NOT_ENDED,
    next: carrier?.[INVOCATIONS],
  };
  if (carrier !== undefined) carrier[INVOCATIONS] = invocation;
  return invocation;
}
