import { startTimer, type Clock } from './clock.js';
import type { MaybePromise } from './driver.js';
import { RateLimitError } from './errors.js';
import type { Verdict } from './verdict.js';

/** How many may wait for one subject. A longer line would only hold memory: the next caller is denied at once. */
const MAX_WAITING = 1_000;

/** How one waiting call tries, and gives back what it got too late. */
export interface Attempt {
  charge(): MaybePromise<Verdict>;
  refund(verdict: Verdict): void;
}

interface Waiter {
  readonly attempt: Attempt;
  readonly deadline: number;
  settled: boolean;
  finish(verdict: Verdict): void;
  fail(reason: unknown): void;
}

/** Lines of callers, one a subject: served in arrival order, one attempt at a time. */
export class WaitingLines {
  readonly #clock: Clock;
  readonly #lines = new Map<string, WaitingLine>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Waits for a turn of at most `maxWaitMs`. Resolves to an allowed verdict once the call may go, or to a denied
   * one as soon as it is clear that it can't within that time.
   * @throws the signal's reason; `RL_CLOSED`
   */
  async join(key: string, attempt: Attempt, maxWaitMs: number, signal?: AbortSignal): Promise<Verdict> {
    signal?.throwIfAborted();
    const deadline = this.#clock.now() + maxWaitMs;
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new WaitingLine(this.#clock, () => this.#lines.delete(key));
      this.#lines.set(key, line);
    }
    const verdict = await line.join(attempt, deadline, signal);
    if (!verdict.allowed || verdict.delayMs === 0) return verdict;
    try {
      await holdUntil(this.#clock, this.#clock.now() + verdict.delayMs, signal);
    } catch (reason) {
      attempt.refund(verdict);
      throw reason;
    }
    return verdict;
  }

  /** Something was given back: whoever is first in line looks again. */
  wake(key: string): void {
    this.#lines.get(key)?.wake();
  }

  wakeAll(): void {
    for (const line of this.#lines.values()) line.wake();
  }

  close(): void {
    for (const line of this.#lines.values()) line.close();
  }
}

/** Resolves at `time` of the clock; rejects with the signal's reason as soon as it is aborted. */
export function holdUntil(clock: Clock, time: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let cancel: () => void;
    const leave = () => {
      cancel();
      reject(signal!.reason as Error);
    };
    const look = () => {
      const left = time - clock.now();
      if (left > 0) {
        cancel = startTimer(clock, look, left);
        return;
      }
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    cancel = startTimer(clock, look, time - clock.now());
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted) leave();
  });
}

class WaitingLine {
  readonly #clock: Clock;
  readonly #onEmpty: () => void;
  readonly #waiting: Waiter[] = [];
  #serving = false;
  #denial: Verdict | undefined;
  #wakeUp: (() => void) | undefined;

  constructor(clock: Clock, onEmpty: () => void) {
    this.#clock = clock;
    this.#onEmpty = onEmpty;
  }

  join(attempt: Attempt, deadline: number, signal?: AbortSignal): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING && this.#denial !== undefined) return resolve(this.#denial);
      let cancelDeadline: () => void = () => {};
      const settle = () => {
        waiter.settled = true;
        cancelDeadline();
        signal?.removeEventListener('abort', leave);
        this.#remove(waiter);
      };
      const waiter: Waiter = {
        attempt,
        deadline,
        settled: false,
        finish: (verdict) => (settle(), resolve(verdict)),
        fail: (reason) => (settle(), reject(reason)),
      };
      const leave = () => waiter.fail(signal!.reason);
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiter);
      if (this.#waiting.length > 1) cancelDeadline = this.#startDeadline(waiter);
      void this.#serve();
    });
  }

  wake(): void {
    this.#wakeUp?.();
  }

  close(): void {
    const reason = new RateLimitError('RL_CLOSED', 'the limiter was closed while this call waited');
    for (const waiter of this.#waiting.slice()) waiter.fail(reason);
  }

  /** Serves whoever is first, until nobody waits. */
  async #serve(): Promise<void> {
    if (this.#serving) return;
    this.#serving = true;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        const charged = first.attempt.charge();
        const verdict = charged instanceof Promise ? await charged : charged;
        if (verdict.allowed) this.#letGo(first, verdict);
        else await this.#waitTurn(first, verdict);
      } catch (error) {
        if (!first.settled) first.fail(error);
      }
    }
    this.#serving = false;
    this.#onEmpty();
  }

  #letGo(first: Waiter, verdict: Verdict): void {
    const late = first.settled || this.#clock.now() + verdict.delayMs > first.deadline;
    if (late) first.attempt.refund(verdict);
    if (first.settled) return;
    if (!late) return first.finish(verdict);
    first.finish({ ...verdict, allowed: false, retryAfterMs: verdict.delayMs, delayMs: 0 });
  }

  async #waitTurn(first: Waiter, denial: Verdict): Promise<void> {
    this.#denial = denial;
    if (first.settled) return;
    const time = this.#clock.now() + denial.retryAfterMs;
    if (time > first.deadline) return first.finish(denial);
    await new Promise<void>((resolve) => {
      const cancel = startTimer(this.#clock, resolve, denial.retryAfterMs);
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
    });
    this.#wakeUp = undefined;
  }

  #startDeadline(waiter: Waiter): () => void {
    return startTimer(
      this.#clock,
      () => {
        // The first one's turn is decided by its own attempt, at the moment its denial lifts.
        if (waiter !== this.#waiting[0] && this.#denial !== undefined) waiter.finish(this.#denial);
      },
      waiter.deadline - this.#clock.now(),
    );
  }

  #remove(waiter: Waiter): void {
    const index = this.#waiting.indexOf(waiter);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    // The next one must not sleep out the delay of somebody who has left.
    if (index === 0) this.#wakeUp?.();
  }
}
