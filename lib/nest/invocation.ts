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

/** Invocations of calls without a request of their own. */
const byIdentity = new WeakMap<object, Invocation>();

/** The latest invocation of each handler, by what parameter decorators see of a socket's message. */
const byMessage = new WeakMap<object, Map<unknown, Invocation>>();

/**
 * The invocation of a context. In HTTP, guard and interceptor get different contexts and argument arrays; what they
 * share is the request and the handler. A property of the request is several times cheaper than a `WeakMap`.
 * Elsewhere a request may carry many calls (a socket, a batch), and something else is one call's own.
 */
export function invocationOf(context: ExecutionContext): Invocation | undefined {
  let invocation =
    context.getType() === 'http' ? requestOf(context)?.[INVOCATIONS] : byIdentity.get(identityOf(context));
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
  const identity = identityOf(context);
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
    next: request === undefined ? byIdentity.get(identity) : request[INVOCATIONS],
  };
  if (request === undefined) byIdentity.set(identity, invocation);
  else request[INVOCATIONS] = invocation;
  if (context.getType() === 'ws') keepByMessage(context, invocation);
  return invocation;
}

/** As {@link invocationOf}, for parameter decorators: for a socket's message they get an array of their own. */
export function invocationOfParameter(context: ExecutionContext): Invocation | undefined {
  return context.getType() === 'ws'
    ? byMessage.get(messageOf(context))?.get(context.getHandler())
    : invocationOf(context);
}

/** What only this call has: GraphQL's `info`, a message's context, and of a socket's message the array of arguments. */
function identityOf(context: ExecutionContext): object {
  const args: readonly unknown[] = context.getArgs();
  const type = context.getType<string>();
  const own = type === 'graphql' ? args[3] : type === 'rpc' ? args.at(-1) : args;
  return isObject(own) ? own : args;
}

function keepByMessage(context: ExecutionContext, invocation: Invocation): void {
  const message = messageOf(context);
  let latest = byMessage.get(message);
  if (latest === undefined) {
    latest = new Map();
    byMessage.set(message, latest);
  }
  latest.set(invocation.handler, invocation);
}

/** The body or the acknowledgement, which are the message's own; a message with neither is as good as its socket. */
function messageOf(context: ExecutionContext): object {
  const [client, ...rest] = context.getArgs<unknown[]>();
  return rest.find(isObject) ?? (client as object);
}

function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}

function requestOf(context: ExecutionContext): Carrier | undefined {
  return context.switchToHttp().getRequest<Carrier | undefined>();
}
