/** Longer than any address; what is longer was made up, and must not buy memory here. */
const MOST_CHARACTERS = 64;

/**
 * Remembers what was used recently, in at most two generations of `capacity` entries each.
 *
 * When the young generation is full it becomes the old one, and what was old and unused is gone. So eviction costs
 * nothing per entry, unlike with a list of uses, and a flood of new keys can't push out what is used all the time.
 */
export class RecentCache<Value extends object> {
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  /**
   * @param capacity entries a generation, at least 1.
   * @param longestKey in characters
   */
  constructor(
    private readonly capacity: number,
    private readonly longestKey = MOST_CHARACTERS,
  ) {}

  get(key: string): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Keeps the entry, unless its key is too long. */
  set(key: string, value: Value): void {
    if (key.length > this.longestKey) return;
    if (this.#young.size >= this.capacity) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }
}
