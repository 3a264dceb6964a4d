import { strictestVerdict, type Verdict } from '../core/verdict.js';
import { retryAfterSeconds } from './rate-limit-headers.js';

/** The media type of {@link ProblemDetails}, for `Content-Type`. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json; charset=utf-8';

/** 429: a limit was exceeded. 503: the limits could not be checked, and the policy denies then. */
export type ProblemStatus = 429 | 503;

/** The body of a denial: RFC 9457, with the problem types of draft-ietf-httpapi-ratelimit-headers-11. */
export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  readonly status: ProblemStatus;
  /** A sentence for a person, of numbers and units only. */
  readonly detail: string;
  /** The names of the policies that denied the call. */
  readonly 'violated-policies': readonly string[];
}

/**
 * The body for a denied call.
 *
 * @param verdicts all verdicts of the call; those that denied it are named.
 * @param windowMsOf the window of the policy behind `verdicts[index]`, in milliseconds.
 */
export function problemDetails(
  status: ProblemStatus,
  verdicts: readonly Verdict[],
  windowMsOf: (index: number) => number,
): ProblemDetails {
  return {
    ...PROBLEMS[status],
    status,
    detail: status === 503 ? UNCHECKED_DETAIL : exceededDetail(verdicts, windowMsOf),
    'violated-policies': verdicts.filter(({ allowed }) => !allowed).map(({ policy }) => policy),
  };
}

const PROBLEMS = {
  429: {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Too Many Requests',
  },
  503: {
    type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    title: 'Service Unavailable',
  },
} as const;

const UNCHECKED_DETAIL = 'The request limits cannot be checked at the moment. Try again later.';

function exceededDetail(verdicts: readonly Verdict[], windowMsOf: (index: number) => number): string {
  const strictest = strictestVerdict(verdicts);
  if (strictest === undefined) return 'Limit exceeded.';
  const requests = counted(strictest.limit, 'request');
  const window = perWindow(windowMsOf(verdicts.indexOf(strictest)));
  return `Limit of ${requests} per ${window} exceeded. ${adviceFor(verdicts)}`;
}

function adviceFor(verdicts: readonly Verdict[]): string {
  const seconds = retryAfterSeconds(verdicts);
  if (seconds === undefined) return 'This request can never fit within it, so trying again will not help.';
  return `Try again in ${waitOf(seconds * 1000)}.`;
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
  ['millisecond', 1],
] as const;

/** `minute`, `10 seconds`: in the largest unit that leaves no fraction. */
function perWindow(windowMs: number): string {
  const [unit, unitMs] = UNITS.find(([, ms]) => windowMs % ms === 0) ?? ['millisecond', 1];
  return windowMs === unitMs ? unit : counted(windowMs / unitMs, unit);
}

/** `21 seconds`, `3 minutes`: rounded up, so that it is never too early, in the largest unit of which there are two. */
function waitOf(waitMs: number): string {
  const [unit, unitMs] = UNITS.find(([name, ms]) => waitMs >= 2 * ms || name === 'second')!;
  return counted(Math.ceil(waitMs / unitMs), unit);
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
