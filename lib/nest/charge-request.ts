import type { CallContext } from '../core/call-context.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import type { MaybePromise } from '../core/driver.js';
import type { KeyPart } from '../core/policy.js';
import { requireCost, type ChargeRequest } from '../core/rate-limiter.js';
import { GLOBAL_SUBJECT, subjectOf } from '../core/subject.js';
import { keyOf, type PlannedPolicy } from './handler-plan.js';

/** A policy that this call skips, or one whose subject is not known yet. */
export type NoCharge = 'skipped' | 'deferred';

/** Goes on with a value at once, or when it is there: what is synchronous stays so. */
export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** All values at once where none is a promise. */
export function allOf<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  for (const value of values) if (value instanceof Promise) return Promise.all(values);
  return values as readonly T[];
}

/**
 * What one policy charges for a call.
 *
 * @param canDefer whether a subject that is not known yet may be asked for again later; otherwise the client's
 * address takes its place
 */
export function chargeFor(
  planned: PlannedPolicy,
  call: CallContext,
  canDefer: boolean,
  report: DiagnosticSink,
): MaybePromise<ChargeRequest | NoCharge> {
  const policy = planned.slot.current;
  if (policy.skip === undefined && planned.skip === undefined) return charge(planned, call, canDefer, report);
  return andThen(policy.skip?.(call) ?? false, (skipped) =>
    andThen(skipped || (planned.skip?.(call) ?? false), (skippedHere) =>
      skippedHere ? 'skipped' : charge(planned, call, canDefer, report),
    ),
  );
}

function charge(
  planned: PlannedPolicy,
  call: CallContext,
  canDefer: boolean,
  report: DiagnosticSink,
): MaybePromise<ChargeRequest | NoCharge> {
  const { slot } = planned;
  return andThen(subjectFor(keyOf(planned), call, canDefer, slot.name, report), (subject) => {
    if (subject === undefined) return 'deferred';
    const cost = planned.cost ?? slot.current.cost;
    if (typeof cost === 'number') return { slot, subject, cost };
    return andThen(cost(call), (units) => ({ slot, subject, cost: requireCost(slot.name, units) }));
  });
}

/** The subject of a call under a key; `undefined` where a part is not known yet. */
function subjectFor(
  key: readonly KeyPart[],
  call: CallContext,
  canDefer: boolean,
  policy: string,
  report: DiagnosticSink,
): MaybePromise<string | undefined> {
  const settle = (part: KeyPart, value: string | undefined): string | undefined => {
    if (value !== undefined || canDefer) return value;
    // Only a call that has an address should have had more to say.
    if (part !== 'ip' && call.ip !== undefined) report(undefinedKey(policy, part));
    return addressSubject(call);
  };
  if (key.length === 1) {
    const [part] = key as [KeyPart];
    return andThen(subjectOfPart(part, call), (value) => settle(part, value));
  }
  return andThen(allOf(key.map((part) => subjectOfPart(part, call))), (values) => {
    const parts = values.map((value, i) => settle(key[i]!, value));
    return parts.includes(undefined) ? undefined : subjectOf.all(...(parts as string[]));
  });
}

function subjectOfPart(part: KeyPart, call: CallContext): MaybePromise<string | undefined> {
  if (part === 'ip') return addressSubject(call);
  if (part === 'user') return named(call.user, subjectOf.user);
  if (part === 'handler') return subjectOf.handler(call.className, call.methodName);
  if (part === 'route')
    return call.route === undefined
      ? subjectOf.handler(call.className, call.methodName)
      : subjectOf.route(call.route);
  if (part === 'global') return GLOBAL_SUBJECT;
  if (typeof part === 'function') return andThen(part(call), (value) => named(textOf(value), subjectOf.key));
  const name = part.slice('header:'.length);
  return named(call.header(name), (value) => subjectOf.header(name, value));
}

function named(value: string | undefined, make: (value: string) => string): string | undefined {
  return value === undefined || value === '' ? undefined : make(value);
}

/** What identifies somebody, as text. Anything that has no text of its own would put everybody in one bucket. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isNaN(value) ? undefined : String(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || typeof value.toString !== 'function') return undefined;
  // Ids of databases are often objects that print as their value.
  const text = (value as { toString: () => string }).toString();
  return text.startsWith('[object ') ? undefined : text;
}

/** The call's address as a subject, or what stands for calls without one. The address is canonical already. */
function addressSubject(call: CallContext): string {
  return call.ip === undefined ? GLOBAL_SUBJECT : `ip:${call.ip}`;
}

function undefinedKey(policy: string, part: KeyPart) {
  const shown = typeof part === 'function' ? `function ${part.name || '(anonymous)'}` : `'${part}'`;
  return {
    code: 'RL_KEY_UNDEFINED',
    message: `the key part ${shown} of policy '${policy}' gave nothing for a call, which counts for its client's address instead`,
  } as const;
}
