/** The most that is kept for Redis' return; then the oldest is given up. */
const MAX_CHANGES = 10_000;

/** What an operator or a refund wanted of Redis while it was away: done in that order when it is back. */
export class DeferredChanges {
  #changes: (() => Promise<void>)[] = [];

  get size(): number {
    return this.#changes.length;
  }

  add(change: () => Promise<void>): void {
    this.#changes.push(change);
    if (this.#changes.length > MAX_CHANGES) this.#changes.shift();
  }

  /**
   * Makes the changes. One that fails is lost where `isLost` says so; at any other it stops, and the rest is kept.
   */
  async make(isLost: (error: unknown) => boolean): Promise<void> {
    while (this.#changes.length > 0) {
      const change = this.#changes[0]!;
      try {
        await change();
      } catch (error) {
        if (!isLost(error)) return;
      }
      if (this.#changes[0] === change) this.#changes.shift();
    }
  }
}
