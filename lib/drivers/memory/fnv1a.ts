/** The published 32-bit offset basis. A secret start value in its place makes collisions unpredictable. */
export const FNV_OFFSET_BASIS = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * FNV-1a, 32 bits, over the text's UTF-8 bytes. Signed: half of the unsigned numbers would be boxed wherever a call
 * isn't inlined.
 * Source: Fowler, Noll, Vo, http://www.isthe.com/chongo/tech/comp/fnv/
 */
export function fnv1a32(text: string, start: number = FNV_OFFSET_BASIS): number {
  const { length } = text;
  // `| 0` tells the compiler that this stays an integer of 32 bits, which halves the time of the loop.
  let hash = start | 0;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return hashTail(text, i, hash);
    hash = Math.imul(hash ^ code, FNV_PRIME) | 0;
  }
  return hash;
}

/** The rest of a text from its first character outside ASCII on. Rare, so it may allocate. */
function hashTail(text: string, from: number, start: number): number {
  let hash = start;
  for (const byte of Buffer.from(text.slice(from), 'utf8')) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash;
}
