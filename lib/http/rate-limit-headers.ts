import { strictestVerdict, type Verdict } from '../core/verdict.js';
import { sfInteger, sfSeconds, sfString } from './structured-fields.js';

/**
 * `ietf`: the structured fields of draft-ietf-httpapi-ratelimit-headers-11, one member a policy.
 * `triple`: `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, in seconds, of the strictest verdict.
 * `legacy`: the same with `X-` in front.
 */
export type HeaderFormat = 'ietf' | 'triple' | 'legacy';

/**
 * Writes what the verdicts of one call say into response headers.
 *
 * @param set puts one header on the response.
 * @param windowMsOf the window of the policy behind `verdicts[index]`, in milliseconds.
 */
export type HeaderWriter = (
  set: (name: string, value: string) => void,
  verdicts: readonly Verdict[],
  windowMsOf: (index: number) => number,
) => void;

/** The writer of all the given formats. */
export function createHeaderWriter(formats: readonly HeaderFormat[]): HeaderWriter {
  const writers = [...new Set(formats)].map((format) => WRITERS[format]());
  return (set, verdicts, windowMsOf) => {
    if (verdicts.length === 0) return;
    for (const write of writers) write(set, verdicts, windowMsOf);
  };
}

/**
 * `Retry-After` in whole seconds, at least 1: the longest wait of the denied verdicts, rounded up.
 *
 * @returns undefined when nothing was denied, and when a denied call can never fit: then no wait helps.
 */
export function retryAfterSeconds(verdicts: readonly Verdict[]): number | undefined {
  const strictest = strictestVerdict(verdicts);
  if (strictest === undefined || strictest.allowed || strictest.retryAfterMs === Infinity) return undefined;
  return Math.max(1, sfSeconds(strictest.retryAfterMs));
}

const WRITERS: Record<HeaderFormat, () => HeaderWriter> = {
  ietf: createIetfWriter,
  triple: () => createTripleWriter('RateLimit'),
  legacy: () => createTripleWriter('X-RateLimit'),
};

/** The `RateLimit-Policy` member of a policy, kept until its quota changes. */
interface PolicyMember {
  readonly quotedName: string;
  readonly limit: number;
  readonly windowMs: number;
  readonly text: string;
}

function createIetfWriter(): HeaderWriter {
  // Names come from the configuration, so there are only so many.
  const members = new Map<string, PolicyMember>();

  const memberOf = ({ policy, limit }: Verdict, windowMs: number): PolicyMember => {
    const known = members.get(policy);
    if (known?.limit === limit && known.windowMs === windowMs) return known;
    const quotedName = known?.quotedName ?? sfString(policy);
    const text = `${quotedName};q=${sfInteger(limit)};w=${Math.max(1, sfSeconds(windowMs))}`;
    const member = { quotedName, limit, windowMs, text };
    members.set(policy, member);
    return member;
  };

  return (set, verdicts, windowMsOf) => {
    let policies = '';
    let quotas = '';
    for (let index = 0; index < verdicts.length; index++) {
      const verdict = verdicts[index]!;
      const { quotedName, text } = memberOf(verdict, windowMsOf(index));
      const separator = index === 0 ? '' : ', ';
      policies += separator + text;
      quotas += `${separator}${quotedName};r=${sfInteger(verdict.remaining)}`;
      if (Number.isFinite(verdict.resetAfterMs)) quotas += `;t=${sfSeconds(verdict.resetAfterMs)}`;
    }
    set('RateLimit-Policy', policies);
    set('RateLimit', quotas);
  };
}

function createTripleWriter(prefix: string): HeaderWriter {
  const limitName = `${prefix}-Limit`;
  const remainingName = `${prefix}-Remaining`;
  const resetName = `${prefix}-Reset`;
  return (set, verdicts) => {
    const strictest = strictestVerdict(verdicts);
    if (strictest === undefined) return;
    set(limitName, String(sfInteger(strictest.limit)));
    set(remainingName, String(sfInteger(strictest.remaining)));
    if (Number.isFinite(strictest.resetAfterMs)) set(resetName, String(sfSeconds(strictest.resetAfterMs)));
  };
}
