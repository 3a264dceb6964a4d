/**
 * What is known of a server's clock: by how much it is ahead of ours. Each reply that carries the server's time narrows
 * that down to between when the command was sent and when the reply was here.
 */
export class ServerTime {
  #least = -Infinity;
  #most = Infinity;

  /**
   * @param serverMs what the server's clock showed, whole milliseconds
   * @param sentAt, receivedAt by our clock, in milliseconds
   */
  learn(serverMs: number, sentAt: number, receivedAt: number): void {
    const least = serverMs - receivedAt;
    // The server rounds down: it may have been almost a millisecond later.
    const most = serverMs + 1 - sentAt;
    if (least > this.#most || most < this.#least) {
      // One of the clocks was set, or has drifted by more than a round trip: what was known is no longer true.
      this.#least = least;
      this.#most = most;
    } else {
      this.#least = Math.max(this.#least, least);
      this.#most = Math.min(this.#most, most);
    }
  }

  /** The earliest that the server's clock can show at `at` of ours; `undefined` before the first reply. */
  earliestAt(at: number): number | undefined {
    return this.#least === -Infinity ? undefined : Math.floor(at + this.#least);
  }

  /** By how much the server's clock is most likely ahead of ours; `undefined` before the first reply. */
  get aheadMs(): number | undefined {
    return this.#most === Infinity ? undefined : (this.#least + this.#most) / 2;
  }
}
