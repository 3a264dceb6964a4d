const BEYOND_LATIN1 = /[^\u0000-\u00ff]/;

/**
 * A copy of a text as one flat string. A slice would keep the text it was cut from alive, and a concatenation its
 * parts, for as long as the copy is kept.
 */
export function detached(text: string): string {
  const encoding = BEYOND_LATIN1.test(text) ? 'utf16le' : 'latin1';
  return Buffer.from(text, encoding).toString(encoding);
}
