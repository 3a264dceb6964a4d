import { createHash } from 'node:crypto';
import { normalizeAddress } from './address.js';

/** The subject of calls that have no narrower one. */
export const GLOBAL_SUBJECT = 'global';

/** What separates the parts of a subject made of several: escaped inside a part. */
const SEPARATOR = '|';

/** A longer subject is replaced by its digest, so that keys stay short whatever callers send. */
const MAX_SUBJECT_LENGTH = 200;
const MAX_PART_LENGTH = 128;

const NEEDS_ESCAPE = /[%|{}\u0000-\u0020\u007f-\u009f\u2028\u2029]/;
const ESCAPED = new RegExp(NEEDS_ESCAPE.source, 'g');

/**
 * A value inside a subject. Separators, braces, spaces and control characters are percent-encoded, so that a
 * caller's text can't imitate another part, another subject or a log line.
 */
function escapePart(value: string): string {
  const text = value.length > MAX_PART_LENGTH ? digest(value) : value;
  if (!NEEDS_ESCAPE.test(text)) return text;
  return text.replace(ESCAPED, (c) => encodeURIComponent(c));
}

function digest(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('base64url')}`;
}

/** Makes the subjects that the service's methods take, exactly as the guard makes them. */
export const subjectOf = {
  /** The client at an address. `ipv6Prefix` as in the module's options. Not an address: the text itself. */
  ip: (address: string, ipv6Prefix = 64): string =>
    `ip:${escapePart(normalizeAddress(address, ipv6Prefix) ?? address)}`,
  /** The user with an id. */
  user: (id: string | number | bigint): string => `user:${escapePart(String(id))}`,
  /** What a key function returned. */
  key: (value: string): string => `key:${escapePart(value)}`,
  /** The value of a request header. */
  header: (name: string, value: string): string => `header:${name.toLowerCase()}:${escapePart(value)}`,
  /** A handler, and the template of a route. */
  handler: (className: string, methodName: string): string => `handler:${className}.${methodName}`,
  route: (template: string): string => `route:${escapePart(template)}`,
  /** A subject of several parts, in the order of the policy's key. */
  all: (...parts: string[]): string => parts.join(SEPARATOR),
} as const;

/** The subject as stores see it: as it is, or its digest where it is long. Applying it twice changes nothing. */
export function boundSubject(subject: string): string {
  return subject.length > MAX_SUBJECT_LENGTH ? digest(subject) : subject;
}
