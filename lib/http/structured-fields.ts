/** The largest integer that a structured field can carry (RFC 9651, section 3.3.1). */
const MAX_INTEGER = 999_999_999_999_999;
const MS_PER_SECOND = 1000;

/** An sf-integer of a count that is never negative: what is larger than the format allows is cut to its maximum. */
export function sfInteger(count: number): number {
  return Math.min(count, MAX_INTEGER);
}

/** Whole seconds, rounded up, as an sf-integer. */
export function sfSeconds(durationMs: number): number {
  return sfInteger(Math.ceil(durationMs / MS_PER_SECOND));
}

/** An sf-string. What isn't printable ASCII is percent-encoded as UTF-8, so no text can leave its header. */
export function sfString(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]+/g, percentEncoded);
  return `"${printable.replace(/["\\]/g, '\\$&')}"`;
}

function percentEncoded(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(
    '',
  );
}
