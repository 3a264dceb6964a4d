/** Every code an error or diagnostic of this library can carry. Each has a page in `docs/errors/`. */
export const ERROR_CODES = [
  'RL_UNKNOWN_OPTION',
  'RL_INVALID_OPTION',
  'RL_INVALID_LIMIT',
  'RL_INVALID_DURATION',
  'RL_INVALID_BURST',
  'RL_INVALID_COST',
  'RL_INVALID_KEY',
  'RL_INVALID_SUBJECT',
  'RL_INVALID_NAME',
  'RL_INVALID_TRUSTED_PROXIES',
  'RL_QUOTA_TOO_LARGE',
  'RL_UNKNOWN_POLICY',
  'RL_UNKNOWN_ALGORITHM',
  'RL_INVALID_ALGORITHM',
  'RL_COST_OVER_CAPACITY',
  'RL_DUPLICATE_POLICY',
  'RL_DUPLICATE_MODULE',
  'RL_NOT_AVAILABLE',
  'RL_OPTION_HAS_NO_EFFECT',
  'RL_NOT_BOUND',
  'RL_NOT_SYNCHRONOUS',
  'RL_NOT_REFUNDABLE',
  'RL_CLOSED',
  'RL_INVALID_CLOCK',
  'RL_DRIVER_UNAVAILABLE',
  'RL_INVALID_ANSWER',
  'RL_PEER_MISSING',
  'RL_REDIS_NOT_READY',
  'RL_REDIS_TIMEOUT',
  'RL_FLEET_UNKNOWN',
  'RL_BREAKER_OPEN',
  'RL_BREAKER_RECOVERING',
  'RL_BREAKER_CLOSED',
  'RL_BROKEN_KEY',
  'RL_ALGORITHM_WITHOUT_SCRIPT',
  'RL_INTERCEPTOR_REQUIRED',
  'RL_GUARD_NOT_BOUND',
  'RL_KEY_UNDEFINED',
  'RL_NO_ADDRESS',
  'RL_RESOLVER_NOT_ASKED',
  'RL_COUNT_IF_FAILED',
  'RL_OBSERVER_FAILED',
  'RL_CALLS_SKIPPED',
  'RL_FORWARDED_UNTRUSTED',
  'RL_FORWARDED_CONFLICT',
  'RL_ADAPTER_TRUSTS_EVERYONE',
  'RL_INVALID_FILE',
  'RL_SOURCE_REJECTED',
  'RL_SOURCE_CHANGED',
  'RL_SOURCE_UNAVAILABLE',
  'RL_POLICY_KEPT',
  'RL_NO_FLEET_SOURCE',
] as const;

/** A stable code: it never changes its meaning between releases. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Base of every error this library throws itself. */
export class RateLimitError extends Error {
  override readonly name: string = 'RateLimitError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${message}`, options);
  }
}

/** What a configuration error tells: where, what would have been right, and what was given. */
export interface ConfigProblem {
  readonly code: ErrorCode;
  /** Where in the options, for example `policies.login.limit`. */
  readonly path: string;
  /** What would have been accepted. */
  readonly expected: string;
  /** What was given: shown shortened, without the password of a URL. Of something secret only its kind is shown. */
  readonly received: unknown;
}

/** Thrown for input that can never work. It has consumed nothing and changed nothing. */
export class RateLimitConfigError extends RateLimitError {
  override readonly name = 'RateLimitConfigError';
  readonly path: string;
  readonly expected: string;
  readonly received: string;

  constructor(problem: ConfigProblem) {
    const received = describeValue(problem.received);
    super(problem.code, `${problem.path}: expected ${problem.expected}, received ${received}`);
    this.path = problem.path;
    this.expected = problem.expected;
    this.received = received;
  }
}

/** Shown as it is: what kind of thing a secret is, and nothing of what it says; or what was described before. */
class Redacted {
  constructor(readonly kind: string) {}
}

export function redacted(value: unknown): unknown {
  return new Redacted(
    typeof value === 'string' ? `text of ${value.length} characters` : describeValue(value),
  );
}

/** The same error, of another place. */
export function relocated(error: RateLimitConfigError, path: string): RateLimitConfigError {
  const { code, expected, received } = error;
  return new RateLimitConfigError({ code, path, expected, received: new Redacted(received) });
}

const MAX_SHOWN = 80;

/** A short, printable form of any value: never throws, never runs over a line. */
function describeValue(value: unknown): string {
  if (value instanceof Redacted) return value.kind;
  if (typeof value === 'string') return JSON.stringify(shorten(withoutPassword(value)));
  if (typeof value === 'function') return `function ${shorten(value.name) || '(anonymous)'}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === 'string' && name !== 'Object' ? `an instance of ${shorten(name)}` : 'an object';
}

/** What somebody threw, in words. Applications throw anything, also what has no text. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return describeValue(thrown);
  }
}

/** Up to the last `@`: a password may hold an `@` or a slash that nobody has encoded. */
export function withoutPassword(text: string): string {
  const start = text.indexOf('://');
  const end = text.lastIndexOf('@');
  return start < 0 || end < start ? text : `${text.slice(0, start)}://…${text.slice(end)}`;
}

function shorten(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
