import parseForwarded from 'forwarded-parse';

/** The headers in which proxies say whom they forward for, as Node spells them. */
export const FORWARDED_HEADERS = ['x-forwarded-for', 'forwarded'] as const;

export type ForwardedHeader = (typeof FORWARDED_HEADERS)[number];

const UNREADABLE = '';

/**
 * The hops that a header lists, nearest first, as text that need not be an address.
 *
 * Each proxy appends on the right, so the left is whatever the client typed. Reading starts on the right and stops
 * with the reader: nothing further left, however malformed, can change what was read before it.
 */
export function* nearestFirst(header: ForwardedHeader, value: string): Generator<string, void, undefined> {
  const separator = header === 'forwarded' ? lastCommaOutsideQuotes : lastComma;
  const read = header === 'forwarded' ? forOf : trimmed;
  let end = value.length;
  while (end >= 0) {
    const comma = separator(value, end);
    yield read(value.slice(comma + 1, end));
    end = comma;
  }
}

function lastComma(value: string, end: number): number {
  return end === 0 ? -1 : value.lastIndexOf(',', end - 1);
}

function lastCommaOutsideQuotes(value: string, end: number): number {
  let quoted = false;
  for (let index = end - 1; index >= 0; index--) {
    const character = value[index];
    // From the right the first quote closes a string, and the next without a backslash before it opens that.
    if (character === '"') quoted = !quoted || value[index - 1] === '\\';
    else if (character === ',' && !quoted) return index;
  }
  return -1;
}

function trimmed(entry: string): string {
  return entry.trim();
}

/** The `for` of one element of `Forwarded` (RFC 7239). */
function forOf(element: string): string {
  try {
    return parseForwarded(element.trim())[0]?.['for'] ?? UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}
