import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import type { CallOutcome } from '../core/policy.js';
import type { Verdict } from '../core/verdict.js';
import type { CallTransport } from './call-transport.js';
import type { HandlerPlan, PlannedPolicy } from './handler-plan.js';

/** One run of one handler, as guard and interceptor share it. */
export interface Invocation {
  readonly handler: unknown;
  readonly plan: HandlerPlan;
  readonly call: CallContext;
  readonly transport: CallTransport;
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

/** Invocations of calls without a request of their own, by the array of arguments that all their contexts share. */
const byArguments = new WeakMap<readonly unknown[], Invocation>();

/**
 * The invocation of a context. In HTTP, guard and interceptor get different contexts and argument arrays; what they
 * share is the request and the handler. A property of the request is several times cheaper than a `WeakMap`.
 * Elsewhere a request may carry many calls (a socket, a batch), and the argument array is one call's own.
 */
export function invocationOf(context: ExecutionContext): Invocation | undefined {
  let invocation =
    context.getType() === 'http' ? requestOf(context)?.[INVOCATIONS] : byArguments.get(context.getArgs());
  const handler = context.getHandler();
  while (invocation !== undefined && invocation.handler !== handler) invocation = invocation.next;
  return invocation;
}

/** Starts the invocation of a context that has none yet. */
export function startInvocation(
  context: ExecutionContext,
  plan: HandlerPlan,
  transport: CallTransport,
): Invocation {
  const request = context.getType() === 'http' ? requestOf(context) : undefined;
  const args: readonly unknown[] = context.getArgs();
  const invocation: Invocation = {
    handler: context.getHandler(),
    plan,
    call: transport.callOf(context, plan.methodName),
    transport,
    verdicts: [],
    deferred: [],
    guarded: false,
    intercepted: false,
    awaited: false,
    ended: NOT_ENDED,
    next: request === undefined ? byArguments.get(args) : request[INVOCATIONS],
  };
  if (request === undefined) byArguments.set(args, invocation);
  else request[INVOCATIONS] = invocation;
  return invocation;
}

function requestOf(context: ExecutionContext): Carrier | undefined {
  return context.switchToHttp().getRequest<Carrier | undefined>();
}
