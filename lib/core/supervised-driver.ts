import type { Receipt } from './algorithm.js';
import type { Charge, Counter, Decision, Driver, DriverStatus, SynchronousDriver } from './driver.js';
import { RateLimitConfigError, RateLimitError } from './errors.js';
import { andThen, orElse, type MaybePromise } from './maybe-promise.js';
import type { ObserverHub } from './observer.js';

/**
 * The way to the driver. Whatever it throws or rejects with, and an answer that is none, is told to observers and
 * becomes `RL_DRIVER_UNAVAILABLE`.
 */
export class SupervisedDriver {
  readonly #driver: Driver;
  readonly #observers: ObserverHub;

  constructor(driver: Driver, observers: ObserverHub) {
    this.#driver = driver;
    this.#observers = observers;
  }

  get name(): string {
    return this.#driver.name;
  }

  get synchronous(): SynchronousDriver | undefined {
    return this.#driver.synchronous;
  }

  decide(group: readonly Charge[]): MaybePromise<readonly Decision[]> {
    return this.#ask('decide', () =>
      andThen(this.#driver.decide(group), (decisions) => this.#requireDecisions(decisions, group.length)),
    );
  }

  /** @param synchronous the driver's own synchronous side */
  decideOne(synchronous: SynchronousDriver, charge: Charge): Decision {
    try {
      const decision = synchronous.decideOne(charge);
      this.#requireDecisions([decision], 1);
      return decision;
    } catch (error) {
      throw this.failure('decide', error);
    }
  }

  peek(counter: Counter): MaybePromise<Decision> {
    return this.#ask('peek', () =>
      andThen(this.#driver.peek(counter), (decision) => {
        this.#requireDecisions([decision], 1);
        return decision;
      }),
    );
  }

  refund(counter: Counter, receipt: Receipt): MaybePromise<void> {
    return this.#ask('refund', () => this.#driver.refund(counter, receipt));
  }

  giveBack(counter: Counter, cost: number): MaybePromise<void> {
    return this.#ask('give back', () => this.#driver.giveBack(counter, cost));
  }

  reset(counter: Counter): MaybePromise<void> {
    return this.#ask('reset', () => this.#driver.reset(counter));
  }

  block(counter: Counter, durationMs: number): MaybePromise<void> {
    return this.#ask('block', () => this.#driver.block(counter, durationMs));
  }

  unblock(counter: Counter): MaybePromise<void> {
    return this.#ask('unblock', () => this.#driver.unblock(counter));
  }

  status(): DriverStatus {
    return this.#driver.status();
  }

  close(): Promise<void> {
    return this.#driver.close();
  }

  /** Tells observers of a failure, and makes the error for it. One of ours says that the input was wrong. */
  failure(operation: string, error: unknown): RateLimitError {
    if (error instanceof RateLimitConfigError) return error;
    const driver = this.#driver.name;
    this.#observers.emit('driverError', { driver, error });
    const message = `the driver '${driver}' could not ${operation}`;
    return new RateLimitError('RL_DRIVER_UNAVAILABLE', message, { cause: error });
  }

  #ask<T>(operation: string, work: () => MaybePromise<T>): MaybePromise<T> {
    return orElse(work, (error) => {
      throw this.failure(operation, error);
    });
  }

  /** @throws RateLimitError with `RL_INVALID_ANSWER`: what is missing would let a call pass uncounted */
  #requireDecisions(answer: unknown, count: number): readonly Decision[] {
    if (Array.isArray(answer) && answer.length === count && answer.every(isDecision)) return answer;
    const asked = `the driver '${this.#driver.name}' was asked for ${count} decision${count === 1 ? '' : 's'}`;
    const got = !Array.isArray(answer)
      ? 'something that is no array'
      : answer.length === count
        ? 'something else'
        : `an array of ${answer.length}`;
    throw new RateLimitError('RL_INVALID_ANSWER', `${asked}, and answered with ${got}`);
  }
}

function isDecision(value: unknown): value is Decision {
  if (typeof value !== 'object' || value === null) return false;
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs } = value as Decision;
  // So written, NaN is none.
  return (
    typeof allowed === 'boolean' && remaining >= 0 && retryAfterMs >= 0 && resetAfterMs >= 0 && delayMs >= 0
  );
}
