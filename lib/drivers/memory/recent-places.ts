import type { Shard } from './shard.js';

/** Shorter texts are hashed as fast as they are sampled. */
const MIN_LENGTH = 8;
const MIN_LINES = 16;
const MAX_LINES = 4_096;
/** Odd, so that no two samples give one product: 2^32 divided by the golden ratio (Knuth, multiplicative hashing). */
const MIX = 0x9e3779b1 | 0;

/** What stands in a line, side by side: one cache miss. */
const SAMPLE = 0;
const SHARD = 1;
const SLOT = 2;
/** The shard's count of moves when the slot was found. */
const MOVES = 3;
const LINE_BITS = 2;

/**
 * Where the subjects asked for lately stand. Hashing a subject takes longer than all the rest of a decision, since
 * every character has to be fetched from the string. Five of them find its line here, and comparing strings that are
 * one object costs next to nothing. The last subject of a line wins; one that is not here is looked up as ever.
 */
export class RecentPlaces {
  readonly #shards: readonly (Shard | undefined)[];
  #shift = 32 - Math.log2(MIN_LINES);
  #texts = new Array<string | undefined>(MIN_LINES).fill(undefined);
  #lines = new Int32Array(MIN_LINES << LINE_BITS);
  /** How many texts had to go for others. */
  #displaced = 0;
  /** Of the text that {@link find} was asked for last. */
  #sample = 0;
  /** The number of the shard in which {@link find} found it. */
  shard = 0;

  constructor(shards: readonly (Shard | undefined)[]) {
    this.#shards = shards;
  }

  /** The slot of a text, or -1. */
  find(text: string): number {
    const { length } = text;
    if (length < MIN_LENGTH) return -1;
    // Ends tell subjects apart best, but those of IPv6 networks are alike for five characters.
    const sample = Math.imul(
      text.charCodeAt(length - 1) ^
        (text.charCodeAt(length - 2) << 7) ^
        (text.charCodeAt(length - 3) << 14) ^
        (text.charCodeAt(length - 6) << 20) ^
        (text.charCodeAt(length - 7) << 25),
      MIX,
    );
    this.#sample = sample;
    const line = sample >>> this.#shift;
    const lines = this.#lines;
    const at = line << LINE_BITS;
    // Texts of different samples differ, and need not be fetched.
    if (lines[at + SAMPLE] !== sample || this.#texts[line] !== text) return -1;
    const shard = lines[at + SHARD]!;
    if (this.#shards[shard]!.moves !== lines[at + MOVES]) return -1;
    this.shard = shard;
    return lines[at + SLOT]!;
  }

  /** Keeps where the text of the last {@link find} was found elsewhere. */
  remember(text: string, shard: number, slot: number): void {
    if (text.length < MIN_LENGTH) return;
    let line = this.#sample >>> this.#shift;
    if (this.#texts[line] !== undefined && this.#lines[line << LINE_BITS] !== this.#sample) {
      if (this.#isCrowded()) this.#grow();
      line = this.#sample >>> this.#shift;
    }
    this.#texts[line] = text;
    const lines = this.#lines;
    const at = line << LINE_BITS;
    lines[at + SAMPLE] = this.#sample;
    lines[at + SHARD] = shard;
    lines[at + SLOT] = slot;
    lines[at + MOVES] = this.#shards[shard]!.moves;
  }

  /** Lets go of every text: it may be a slice that keeps a much larger one alive. */
  clear(): void {
    this.#texts.fill(undefined);
  }

  #isCrowded(): boolean {
    return ++this.#displaced > this.#texts.length && this.#texts.length < MAX_LINES;
  }

  #grow(): void {
    const lines = this.#texts.length * 4;
    this.#displaced = 0;
    this.#shift -= 2;
    this.#texts = new Array<string | undefined>(lines).fill(undefined);
    this.#lines = new Int32Array(lines << LINE_BITS);
  }
}
