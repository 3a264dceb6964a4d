import fc from 'fast-check';
import { FNV_OFFSET_BASIS, fnv1a32 } from '../../../lib/drivers/memory/fnv1a.js';
import { SubjectKey, textAt } from '../../../lib/drivers/memory/subject-key.js';
import { collidingTexts, referenceFnv } from './support.js';

const texts = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);

function keyOf(text: string): SubjectKey {
  const key = new SubjectKey(FNV_OFFSET_BASIS);
  // What was there before must not shine through.
  key.set('~'.repeat(31));
  key.set(text);
  return key;
}

describe('SubjectKey', () => {
  it.each([
    ['', 0x811c9dc5],
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
  ])('hashes %j as published', (text, hash) => {
    expect(keyOf(text).hash >>> 0).toBe(hash);
    expect(fnv1a32(text) >>> 0).toBe(hash);
  });

  it('hashes any text as FNV-1a over its UTF-8 bytes', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(keyOf(text).hash >>> 0).toBe(referenceFnv(text));
        expect(fnv1a32(text) >>> 0).toBe(referenceFnv(text));
      }),
    );
  });

  it('gives a text back from its words, or says that it is kept as a string', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { words, used, long } = keyOf(text);
        const back = textAt(words, 0);
        expect(back).toBe(long ? undefined : text);
        expect(long).toBe(
          text.length > 31 || [...Buffer.from(text, 'utf16le')].some((b, i) => (i % 2 ? b > 0 : b > 0x7f)),
        );
        expect(used).toBeGreaterThan(0);
      }),
    );
  });

  it('never takes two short texts for one, also when a character looks like the end mark of the other', () => {
    const key = (text: string) => {
      const { words, used } = keyOf(text);
      return [...words.slice(0, used)].join();
    };
    fc.assert(
      fc.property(fc.string({ maxLength: 9 }), fc.string({ maxLength: 9 }), (a, b) => {
        expect(key(a) === key(b)).toBe(a === b);
      }),
    );
    expect(key('abc')).not.toBe(key('abc\u0003'));
    expect(key('abc')).not.toBe(key('abc\u0003').slice(0, key('abc').length));
  });
});

describe('collidingTexts', () => {
  it('collide', () => {
    const made = collidingTexts(6);
    expect(new Set(made).size).toBe(64);
    expect(new Set(made.map((text) => referenceFnv(text))).size).toBe(1);
  });
});
