import fc from 'fast-check';
import { halfSipHash } from '../../../lib/drivers/memory/half-sip-hash.js';

const words = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const secrets = fc.record({ k0: words, k1: words });
const texts = fc.string({ unit: 'binary', maxLength: 40 });
const SECRET = { k0: 0x01234567, k1: -0x76543211 };

/** How far counts are from even, for `buckets - 1` degrees of freedom. */
function chiSquare(counts: readonly number[]): number {
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0);
}

function bitsSet(word: number): number {
  let bits = 0;
  for (let rest = word; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

describe('halfSipHash', () => {
  it('gives one number of 32 bits for a text and a secret', () => {
    fc.assert(
      fc.property(texts, secrets, (text, secret) => {
        const hash = halfSipHash(text, secret);
        expect(hash).toBe(hash | 0);
        expect(halfSipHash(text, { ...secret })).toBe(hash);
      }),
      { seed: 1 },
    );
  });

  it('depends on both halves of the secret', () => {
    fc.assert(
      fc.property(texts, secrets, fc.nat(31), (text, secret, bit) => {
        const hash = halfSipHash(text, secret);
        expect(halfSipHash(text, { ...secret, k0: secret.k0 ^ (1 << bit) })).not.toBe(hash);
        expect(halfSipHash(text, { ...secret, k1: secret.k1 ^ (1 << bit) })).not.toBe(hash);
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it('depends on every character, its place, and the length', () => {
    fc.assert(
      fc.property(texts, texts, fc.nat(15), (before, after, bit) => {
        const text = `${before}x${after}`;
        const hash = halfSipHash(text, SECRET);
        const other = String.fromCharCode('x'.charCodeAt(0) ^ (1 << bit));
        expect(halfSipHash(`${before}${other}${after}`, SECRET)).not.toBe(hash);
        expect(halfSipHash(`${text}\0`, SECRET)).not.toBe(hash);
        expect(halfSipHash(`\0${text}`, SECRET)).not.toBe(hash);
        expect(halfSipHash(text.slice(0, -1), SECRET)).not.toBe(hash);
      }),
      { seed: 1, numRuns: 500 },
    );
  });

  it('tells apart texts of nothing but zeros, and what looks like padding', () => {
    const zeros = Array.from({ length: 200 }, (_, length) => '\0'.repeat(length));
    const padded = Array.from(
      { length: 200 },
      (_, length) => 'a'.repeat(length) + String.fromCharCode(length + 1),
    );
    const all = [...zeros, ...padded];
    expect(new Set(all.map((text) => halfSipHash(text, SECRET))).size).toBe(all.length);
  });

  it('spreads like keys evenly, by high bits and by low ones', () => {
    const high = new Array<number>(256).fill(0);
    const low = new Array<number>(256).fill(0);
    for (let i = 0; i < 25_600; i++) {
      const hash = halfSipHash(`ip:10.0.${i >> 8}.${i & 255}`, SECRET);
      high[hash >>> 24]!++;
      low[hash & 255]!++;
    }
    // 255 degrees of freedom: 347 is exceeded once in 10,000.
    expect(chiSquare(high)).toBeLessThan(347);
    expect(chiSquare(low)).toBeLessThan(347);
  });

  it('half of all bits change with one bit of the text or the secret', () => {
    let changed = 0;
    for (let i = 0; i < 1_000; i++) {
      const text = `user:${i}`;
      const hash = halfSipHash(text, SECRET);
      changed += bitsSet(hash ^ halfSipHash(`uses:${i}`, SECRET));
      changed += bitsSet(hash ^ halfSipHash(text, { ...SECRET, k0: SECRET.k0 ^ (1 << (i % 32)) }));
      changed += bitsSet(hash ^ halfSipHash(text, { ...SECRET, k1: SECRET.k1 ^ (1 << (i % 32)) }));
    }
    expect(changed / 3_000 / 32).toBeGreaterThan(0.49);
    expect(changed / 3_000 / 32).toBeLessThan(0.51);
  });

  it('what collides under one secret does not under another', () => {
    const seen = new Map<number, string>();
    const pairs: [string, string][] = [];
    for (let i = 0; pairs.length < 5; i++) {
      const text = `k${i}`;
      const hash = halfSipHash(text, SECRET);
      const other = seen.get(hash);
      if (other !== undefined) pairs.push([other, text]);
      seen.set(hash, text);
    }
    const secret = { k0: SECRET.k0 + 1, k1: SECRET.k1 };
    expect(pairs.filter(([a, b]) => halfSipHash(a, secret) === halfSipHash(b, secret))).toEqual([]);
  });
});
