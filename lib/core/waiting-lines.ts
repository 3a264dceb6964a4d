import { startTimer, type Clock } from './clock.js';
import { DecidedVerdict } from './decided-verdict.js';
import { RateLimitError } from './errors.js';
import { holdUntil } from './hold-until.js';
import { isPromiseLike, type MaybePromise } from './maybe-promise.js';
import type { Verdict } from './verdict.js';

/** How many may wait for one subject. A longer line would only hold memory: the next caller is denied at once. */
const MAX_WAITING = 1_000;

/** What a store needs to answer: who waits for no turn waits for that. One that takes longer is not waited for. */
const ANSWER_MS = 25;

/** How one waiting call tries, and gives back what it got too late. */
export interface Attempt {
  /** Charges, unless the call would be held longer than `patienceMs` then. */
  charge(patienceMs: number): MaybePromise<Verdict>;
  /** Whether it was denied only because it would have been held too long: that is so later, too. */
  isTooFar(denial: Verdict): boolean;
  refund(verdict: Verdict): void;
  /** The denial while the store has said nothing yet. */
  unanswered(): Verdict;
}

interface Waiter {
  readonly attempt: Attempt;
  readonly deadline: number;
  settled: boolean;
  cancelDeadline: () => void;
  finish(verdict: Verdict): void;
  fail(reason: unknown): void;
}

/** Lines of callers, one a subject: served in arrival order, one attempt at a time. */
export class WaitingLines {
  readonly #clock: Clock;
  readonly #lines = new Map<string, WaitingLine>();
  /** Calls that have their turn, and are held until then. */
  readonly #held = new Set<AbortController>();

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
    if (verdict.allowed && verdict.delayMs > 0) await this.#hold(attempt, verdict, signal);
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
    for (const leaving of this.#held) leaving.abort(closedWhileWaiting());
  }

  /** A call that leaves before its turn gives its place back. */
  async #hold(attempt: Attempt, verdict: Verdict, signal: AbortSignal | undefined): Promise<void> {
    const leaving = new AbortController();
    const leave = () => leaving.abort(signal!.reason);
    signal?.addEventListener('abort', leave, { once: true });
    this.#held.add(leaving);
    try {
      if (signal?.aborted) leave();
      await holdUntil(this.#clock, this.#clock.now() + verdict.delayMs, leaving.signal);
    } catch (reason) {
      attempt.refund(verdict);
      throw reason;
    } finally {
      this.#held.delete(leaving);
      signal?.removeEventListener('abort', leave);
    }
  }
}

class WaitingLine {
  readonly #clock: Clock;
  readonly #onEmpty: () => void;
  readonly #waiting: Waiter[] = [];
  #serving = false;
  /** When the attempt at hand began. */
  #askedAt = 0;
  /** The last denial, and when it was given. */
  #denial: { readonly verdict: Verdict; readonly time: number } | undefined;
  /** Ends the sleep until the first one's turn; `undefined` while nobody sleeps. */
  #wakeUp: (() => void) | undefined;
  /** Whether something was given back during the attempt at hand, which may not have seen it. */
  #wokenMeanwhile = false;

  constructor(clock: Clock, onEmpty: () => void) {
    this.#clock = clock;
    this.#onEmpty = onEmpty;
  }

  join(attempt: Attempt, deadline: number, signal?: AbortSignal): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) return resolve(this.#denialFor(attempt));
      const settle = () => {
        waiter.settled = true;
        waiter.cancelDeadline();
        signal?.removeEventListener('abort', leave);
        this.#remove(waiter);
      };
      const waiter: Waiter = {
        attempt,
        deadline,
        settled: false,
        cancelDeadline: startTimer(
          this.#clock,
          () => this.#expire(waiter),
          Math.max(deadline - this.#clock.now(), 0),
        ),
        finish: (verdict) => (settle(), resolve(verdict)),
        fail: (reason) => (settle(), reject(reason)),
      };
      const leave = () => waiter.fail(signal!.reason);
      signal?.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiter);
      void this.#serve();
    });
  }

  wake(): void {
    this.#wokenMeanwhile = true;
    this.#wakeUp?.();
  }

  close(): void {
    for (const waiter of this.#waiting.slice()) waiter.fail(closedWhileWaiting());
  }

  /** Serves whoever is first, until nobody waits. */
  async #serve(): Promise<void> {
    if (this.#serving) return;
    this.#serving = true;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        this.#wokenMeanwhile = false;
        this.#askedAt = this.#clock.now();
        const charged = first.attempt.charge(Math.max(first.deadline - this.#askedAt, 0));
        const verdict = isPromiseLike(charged) ? await charged : charged;
        if (!verdict.allowed) await this.#waitTurn(first, verdict);
        else if (first.settled) first.attempt.refund(verdict);
        else first.finish(verdict);
      } catch (error) {
        if (!first.settled) first.fail(error);
      }
    }
    this.#serving = false;
    this.#onEmpty();
  }

  async #waitTurn(first: Waiter, denial: Verdict): Promise<void> {
    const now = this.#clock.now();
    this.#denial = { verdict: denial, time: now };
    if (first.settled || this.#wokenMeanwhile) return;
    if (now + denial.retryAfterMs > first.deadline || first.attempt.isTooFar(denial))
      return first.finish(denial);
    await new Promise<void>((resolve) => {
      const cancel = startTimer(this.#clock, resolve, denial.retryAfterMs);
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
    });
    this.#wakeUp = undefined;
  }

  /** A waiter's time is over. Only the store's answer to an attempt at hand is still waited for, and not for long. */
  #expire(waiter: Waiter): void {
    const now = this.#clock.now();
    if (now < waiter.deadline) {
      // Timers hold no longer than 24 days.
      waiter.cancelDeadline = startTimer(this.#clock, () => this.#expire(waiter), waiter.deadline - now);
      return;
    }
    if (this.#wakeUp !== undefined) {
      if (waiter !== this.#waiting[0]) return waiter.finish(this.#denialFor(waiter.attempt));
      // Its turn falls on its deadline.
      this.#askedAt = now;
      this.#wakeUp();
    }
    const left = this.#askedAt + ANSWER_MS - now;
    if (left <= 0) return waiter.finish(this.#denialFor(waiter.attempt));
    waiter.cancelDeadline = startTimer(this.#clock, () => this.#expire(waiter), left);
  }

  /** The last denial in this line, as it would be told now. */
  #denialFor(attempt: Attempt): Verdict {
    if (this.#denial === undefined) return attempt.unanswered();
    const { verdict, time } = this.#denial;
    return DecidedVerdict.denialAfter(verdict, this.#clock.now() - time);
  }

  #remove(waiter: Waiter): void {
    const index = this.#waiting.indexOf(waiter);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    // The next one must not sleep out the delay of somebody who has left.
    if (index === 0) this.#wakeUp?.();
  }
}

function closedWhileWaiting(): RateLimitError {
  return new RateLimitError('RL_CLOSED', 'the limiter was closed while this call waited');
}
