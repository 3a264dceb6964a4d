import { fnv1a32 } from './fnv1a.js';

/** How many 32-bit words a table gives each key: ASCII characters, and a last byte that ends them. */
export const KEY_WORDS = 8;
/** The longest text that stands in the table itself. `ip:2001:db8:aaaa:bbbb::/64` has 26 characters. */
const MAX_SHORT = KEY_WORDS * 4 - 1;
const FNV_PRIME = 0x01000193;
/** The last word's last byte is the length with this bit, which no ASCII character has. */
const END = 0x80;
/** A first word that says: the text is not in the table. */
const LONG = -1;

/**
 * The subject of one look-up, made ready for the tables: its hash, and its characters as a table keeps them. Short
 * ASCII texts are kept as bytes beside the counters: no string object to hold, to copy, to trace for the garbage
 * collector, or to fetch from elsewhere in memory. One object serves all look-ups, one after another.
 */
export class SubjectKey {
  readonly words = new Int32Array(KEY_WORDS);
  readonly #start: number;
  /** FNV-1a, 32 bits, signed. */
  hash = 0;
  /** The hash as it places an entry: the low bits chose the shard and are alike there, so the high ones are mixed. */
  mixed = 0;
  /** How many of {@link words} count. */
  used = 0;
  /** The text is kept as a string. */
  long = false;

  /** @param start the secret start value of the hash */
  constructor(start: number) {
    this.#start = start | 0;
  }

  /**
   * Hashes and packs in one pass: the packing hides behind the latency of the multiplications. Four characters a
   * round, which saves a fifth of the time.
   */
  set(text: string): void {
    const { length } = text;
    if (length > MAX_SHORT) return this.#setLong(text);
    const { words } = this;
    let hash = this.#start;
    let seen = 0;
    let word = 0;
    let i = 0;
    for (; i + 3 < length; i += 4) {
      const a = text.charCodeAt(i);
      const b = text.charCodeAt(i + 1);
      const c = text.charCodeAt(i + 2);
      const d = text.charCodeAt(i + 3);
      seen |= a | b | c | d;
      words[word++] = a | (b << 8) | (c << 16) | (d << 24);
      hash = Math.imul(hash ^ a, FNV_PRIME) | 0;
      hash = Math.imul(hash ^ b, FNV_PRIME) | 0;
      hash = Math.imul(hash ^ c, FNV_PRIME) | 0;
      hash = Math.imul(hash ^ d, FNV_PRIME) | 0;
    }
    let last = (length | END) << 24;
    for (let shift = 0; i < length; i++, shift += 8) {
      const code = text.charCodeAt(i);
      seen |= code;
      last |= code << shift;
      hash = Math.imul(hash ^ code, FNV_PRIME) | 0;
    }
    if (seen > 0x7f) return this.#setLong(text);
    words[word] = last;
    this.used = word + 1;
    this.long = false;
    this.hash = hash;
    this.mixed = mix(hash);
  }

  #setLong(text: string): void {
    this.hash = fnv1a32(text, this.#start);
    this.mixed = mix(this.hash);
    this.words[0] = LONG;
    this.used = 1;
    this.long = true;
  }
}

function mix(hash: number): number {
  return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
}

/** The text of a key as `words` hold it from `at` on; `undefined` where it is kept as a string. */
export function textAt(words: Int32Array, at: number): string | undefined {
  if (words[at] === LONG) return undefined;
  let last = at;
  while (words[last]! >= 0) last++;
  const length = (words[last]! >>> 24) - END;
  return String.fromCharCode(...new Uint8Array(words.buffer, words.byteOffset + at * 4, length));
}
