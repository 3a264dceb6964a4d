import fc from 'fast-check';
import { FNV_OFFSET_BASIS, fnv1a32 as signed } from '../../../lib/drivers/memory/fnv1a.js';

/** As the published vectors write it. */
const fnv1a32 = (text: string, start?: number): number => signed(text, start) >>> 0;

/** The definition, over bytes, in whole numbers of any size. */
function reference(bytes: Uint8Array, start = 0x811c9dc5): number {
  let hash = BigInt(start);
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffffffffn;
  return Number(hash);
}

describe('fnv1a32', () => {
  // From the test vectors that come with the reference code.
  it.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['b', 0xe70c2de5],
    ['c', 0xe60c2c52],
    ['d', 0xe10c2473],
    ['e', 0xe00c22e0],
    ['f', 0xe30c2799],
    ['fo', 0x6222e842],
    ['foo', 0xa9f37ed7],
    ['foob', 0x3f5076ef],
    ['fooba', 0x39aaa18a],
    ['foobar', 0xbf9cf968],
  ])('%j', (text, expected) => {
    expect(fnv1a32(text)).toBe(expected);
    expect(reference(Buffer.from(text))).toBe(expected);
  });

  it('takes the bytes of UTF-8, in one text with ASCII or without', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary-ascii', maxLength: 50 }),
      fc.string({ unit: 'binary', maxLength: 50 }),
      fc.string({ unit: 'grapheme', maxLength: 50 }),
      fc
        .tuple(
          fc.string(),
          fc.constantFrom('é', '€', '😀', '\u007f', '\u0080', '\ud800', '\udc00'),
          fc.string(),
        )
        .map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(fnv1a32(text)).toBe(reference(Buffer.from(text, 'utf8')));
      }),
      { seed: 1, numRuns: 1_000 },
    );
  });

  it('goes on from a start value, also a secret one; the published one is the default', () => {
    expect(fnv1a32('foobar', FNV_OFFSET_BASIS)).toBe(0xbf9cf968);
    expect(fnv1a32('bar', fnv1a32('foo'))).toBe(0xbf9cf968);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 0xffffffff }), (text, start) => {
        expect(fnv1a32(text, start)).toBe(reference(Buffer.from(text), start));
        // The same 32 bits, read as a signed number.
        expect(fnv1a32(text, start | 0)).toBe(fnv1a32(text, start));
      }),
      { seed: 1 },
    );
  });

  it('gives unsigned numbers of 32 bits', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const hash = fnv1a32(text);
        expect(hash).toBe(hash >>> 0);
      }),
      { seed: 1 },
    );
  });
});
