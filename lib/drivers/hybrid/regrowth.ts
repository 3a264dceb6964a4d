import type { Quota } from '../../core/algorithm.js';

export interface RegrowthOptions {
  /** How many instances there were before the outage. */
  readonly known: number;
  readonly minShare: number;
  /** When it is over at the latest, in the store's milliseconds: who is not back by then is not waited for. */
  readonly until: number;
}

/**
 * The time after an outage in which instances come back one after another. Those that are not back yet still let through
 * their own shares, so those that are enforce on Redis no more than the sum of theirs.
 */
export class Regrowth {
  readonly #options: RegrowthOptions;
  #back = 1;
  #scaled = new WeakMap<Quota, Quota>();

  constructor(options: RegrowthOptions) {
    this.#options = options;
  }

  /** So many instances have beaten since the outage began. */
  sees(back: number): void {
    if (back === this.#back) return;
    this.#back = back;
    this.#scaled = new WeakMap();
  }

  isOver(now: number): boolean {
    return this.#back >= this.#options.known || now >= this.#options.until;
  }

  /** The part of a quota that is enforced on Redis for now. */
  scale(quota: Quota): Quota {
    let scaled = this.#scaled.get(quota);
    if (scaled === undefined) {
      scaled = {
        limit: this.#part(quota.limit),
        windowMs: quota.windowMs,
        burst: this.#part(quota.burst),
        maxDelayMs: quota.maxDelayMs,
      };
      this.#scaled.set(quota, scaled);
    }
    return scaled;
  }

  #part(amount: number): number {
    const { known, minShare } = this.#options;
    const back = Math.min(this.#back, known);
    return Math.min(amount, Math.max(Math.floor((amount * back) / known), back * minShare));
  }
}
