import { monotonicClock, type Clock } from '../../core/clock.js';
import { ServerTime } from '../redis/server-time.js';

/**
 * Redis' clock as far as it is known here, so that instances that decide by themselves agree on when a window begins.
 * Before the first answer it is this process' own.
 */
export class ServerClock implements Clock {
  readonly #serverTime = new ServerTime();
  #aheadMs = monotonicClock.now() - performance.now();

  now(): number {
    return Math.floor(performance.now() + this.#aheadMs);
  }

  /** As {@link ServerTime.learn}. */
  learn(serverMs: number, sentAt: number, receivedAt: number): void {
    this.#serverTime.learn(serverMs, sentAt, receivedAt);
    this.#aheadMs = this.#serverTime.aheadMs ?? this.#aheadMs;
  }

  /** As {@link ServerTime.earliestAt}. */
  earliestAt(at: number): number | undefined {
    return this.#serverTime.earliestAt(at);
  }
}
