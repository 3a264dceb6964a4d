import type { CallContext } from '../core/call-context.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { andThen, mapAll, type MaybePromise } from '../core/maybe-promise.js';
import type { KeyPart } from '../core/policy.js';
import { GLOBAL_SUBJECT, subjectOf } from '../core/subject.js';

/** The subject of a call under a key; `undefined` where a part is not known yet. */
export function subjectFor(
  key: readonly KeyPart[],
  call: CallContext,
  canDefer: boolean,
  policy: string,
  report: DiagnosticSink,
): MaybePromise<string | undefined> {
  const settle = (part: KeyPart, value: string | undefined): string | undefined => {
    if (value !== undefined || canDefer) return value;
    // Without an address the call is no HTTP request: there is no header and no user to miss.
    if (part !== 'ip' && call.ip !== undefined) report(undefinedKey(policy, part));
    return addressSubject(call);
  };
  if (key.length === 1) {
    const [part] = key as [KeyPart];
    return andThen(subjectOfPart(part, call), (value) => settle(part, value));
  }
  return andThen(
    mapAll(key, (part) => subjectOfPart(part, call)),
    (values) => {
      const parts = values.map((value, i) => settle(key[i]!, value));
      return parts.includes(undefined) ? undefined : subjectOf.all(...(parts as string[]));
    },
  );
}

function subjectOfPart(part: KeyPart, call: CallContext): MaybePromise<string | undefined> {
  if (part === 'ip') return addressSubject(call);
  if (part === 'user') return named(textOf(call.user), subjectOf.user);
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
  const text = (value as { toString: () => unknown }).toString();
  return typeof text !== 'string' || text.startsWith('[object ') ? undefined : text;
}

/** The call's address as a subject, or what stands for calls without one. The address is canonical already. */
function addressSubject(call: CallContext): string {
  return call.ip === undefined ? GLOBAL_SUBJECT : `ip:${call.ip}`;
}

function undefinedKey(policy: string, part: KeyPart) {
  const shown = typeof part === 'function' ? `function ${part.name || '(anonymous)'}` : `'${part}'`;
  return {
    code: 'RL_KEY_UNDEFINED',
    message:
      `the key part ${shown} of policy '${policy}' gave nothing for a call, ` +
      "which counts for its client's address instead",
  } as const;
}
