import * as v from 'valibot';
import { parseDuration } from './duration.js';
import { ERROR_CODES, RateLimitConfigError, type ErrorCode } from './errors.js';

/** A check of one value, and what it completes it to. */
export type Rule<T> = v.GenericSchema<unknown, T>;

/**
 * A schema for one value: `parse` gives the completed value, or `undefined` for one that is not acceptable.
 * The code and the words of `expected` end up in the error, and what `show` makes of a value that was refused.
 */
export function rule<T>(
  code: ErrorCode,
  expected: string,
  parse: (value: unknown) => T | undefined,
  show: (value: unknown) => unknown = (value) => value,
): Rule<T> {
  return v.pipe(
    v.unknown(),
    v.rawTransform<unknown, T>(({ dataset, addIssue, NEVER }) => {
      const parsed = parse(dataset.value);
      if (parsed !== undefined) return parsed;
      addIssue({ message: code, expected, input: show(dataset.value) });
      return NEVER;
    }),
  );
}

/** The longest that a timer of Node's can take, in milliseconds: of anything longer it makes 1. */
export const MOST_TIMER_MS = 2 ** 31 - 1;

/** A whole number from `min` to `max`, also as text: environment variables are text. */
export function wholeNumber(code: ErrorCode, min: number, max = Number.MAX_SAFE_INTEGER) {
  const expected = max === Number.MAX_SAFE_INTEGER ? `≥ ${min}` : `from ${min} to ${max}`;
  return rule(code, `a whole number ${expected}`, (value) => {
    const number = parseWhole(value, min);
    return number !== undefined && number <= max ? number : undefined;
  });
}

export function parseWhole(value: unknown, min: number): number | undefined {
  const number = typeof value === 'string' && /^\s*\d{1,16}\s*$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= min ? number : undefined;
}

/** A duration of at least `min` milliseconds, as whole milliseconds. */
export function duration(min: number) {
  return rule(
    'RL_INVALID_DURATION',
    `milliseconds or a duration such as '10s', at least ${min}ms`,
    (value) => {
      const ms = parseDuration(value);
      return ms !== undefined && ms >= min ? ms : undefined;
    },
  );
}

/** A function; which one is the type system's to know. */
export function callable<T>() {
  return rule('RL_INVALID_OPTION', 'a function', (value) =>
    typeof value === 'function' ? (value as T) : undefined,
  );
}

export function boolean() {
  return rule('RL_INVALID_OPTION', 'true or false', (value) =>
    typeof value === 'boolean' ? value : undefined,
  );
}

/** An object or a function (a class); what it is made of is for others to say. */
export function objectLike<T>(expected: string) {
  return rule('RL_INVALID_OPTION', expected, (value) =>
    (typeof value === 'object' && value !== null) || typeof value === 'function' ? (value as T) : undefined,
  );
}

/** One of a few names. */
export function oneOf<const T extends readonly string[]>(names: T) {
  return rule('RL_INVALID_OPTION', names.map((name) => `'${name}'`).join(' | '), (value) =>
    names.includes(value as string) ? (value as T[number]) : undefined,
  );
}

/** Text without control characters, 1 to 200 characters: it names things in logs, headers and stores. */
export const nameRule = rule(
  'RL_INVALID_NAME',
  'text of 1 to 200 characters without control characters',
  (value) => (isName(value) ? value : undefined),
);

export function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[^\u0000-\u001f\u007f-\u009f]{1,200}$/.test(value);
}

/**
 * Checks `input` and returns it completed.
 * @throws RateLimitConfigError for the first thing that is wrong
 */
export function validate<T extends v.GenericSchema>(
  schema: T,
  input: unknown,
  path: string,
): v.InferOutput<T> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  // A misspelt option is the reason why another one is missing.
  const issue = result.issues.find(isUnknownOption) ?? result.issues[0];
  const keys = (issue.path ?? []).map((item) => String(item.key));
  const where = [path, ...keys].filter((part) => part !== '').join('.') || 'options';
  if (isUnknownOption(issue)) {
    const known = Object.keys(entriesAt(schema, issue.path) ?? {});
    throw new RateLimitConfigError({
      code: 'RL_UNKNOWN_OPTION',
      path: where,
      expected: known.length === 0 ? 'no such option' : `one of ${known.join(', ')}`,
      received: keys.at(-1),
    });
  }
  // A key that is missing is told of by its object: what was expected there, its own rule says.
  const missing =
    issue.type === 'strict_object' ? entriesAt(schema, issue.path)?.[keys.at(-1) ?? ''] : undefined;
  const { message, expected } =
    missing === undefined ? issue : (v.safeParse(missing, undefined).issues?.[0] ?? issue);
  throw new RateLimitConfigError({
    code: isErrorCode(message) ? message : 'RL_INVALID_OPTION',
    path: where,
    expected: expected ?? 'another value',
    received: issue.input,
  });
}

function isUnknownOption({ type, expected }: v.BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never';
}

function isErrorCode(text: string): text is ErrorCode {
  return (ERROR_CODES as readonly string[]).includes(text);
}

/** The options of the object in which something is unknown or missing. */
function entriesAt(
  schema: unknown,
  path: readonly { key: unknown }[] | undefined,
): Record<string, v.GenericSchema> | undefined {
  let at = schema as { entries?: Record<string, unknown>; wrapped?: unknown } | undefined;
  for (const { key } of (path ?? []).slice(0, -1)) {
    at = unwrap(at)?.entries?.[String(key)] as typeof at;
  }
  return unwrap(at)?.entries as Record<string, v.GenericSchema> | undefined;
}

function unwrap(schema: { wrapped?: unknown; entries?: Record<string, unknown> } | undefined) {
  let at = schema;
  while (at?.wrapped !== undefined) at = at.wrapped as typeof at;
  return at;
}
