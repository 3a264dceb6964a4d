/** A histogram as plain numbers, until somebody reads it. */
export class DurationTally {
  /** How many there were up to each bound and above the one before it; the last has no bound. */
  #counts: Float64Array;
  #sum = 0;

  /** @param bounds ascending, in seconds */
  constructor(readonly bounds: readonly number[]) {
    this.#counts = new Float64Array(bounds.length + 1);
  }

  add(seconds: number): void {
    const { bounds } = this;
    let i = 0;
    while (i < bounds.length && seconds > bounds[i]!) i++;
    this.#counts[i]!++;
    this.#sum += seconds;
  }

  /** What was added since it was last taken. */
  take(): { readonly counts: Float64Array; readonly sum: number } {
    const taken = { counts: this.#counts, sum: this.#sum };
    this.#counts = new Float64Array(this.bounds.length + 1);
    this.#sum = 0;
    return taken;
  }
}
