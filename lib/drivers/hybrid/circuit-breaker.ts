import type { Clock } from '../../core/clock.js';
import type { BreakerChangeEvent } from '../../core/observer.js';
import { startBackgroundTimer } from '../../core/background-timer.js';

/** What the breaker is doing. Times are the clock's milliseconds. */
export type BreakerState =
  | { readonly name: 'closed' }
  | { readonly name: 'open'; readonly until: number }
  | { readonly name: 'half-open'; readonly probe: Promise<void> }
  | { readonly name: 'recovering' };

export interface CircuitBreakerOptions {
  /** How many failures in a row open it, ≥ 1. */
  readonly failureThreshold: number;
  /** How long it stays open, in milliseconds; up to 20 % longer, so that a fleet doesn't probe in step. */
  readonly coolOffMs: number;
  readonly clock: Clock;
  /** Asks the store once. Rejects while it can't serve. */
  readonly probe: () => Promise<void>;
  readonly onChange: (change: Omit<BreakerChangeEvent, 'driver'>) => void;
  /** 0 ≤ … < 1. For tests. */
  readonly random?: () => number;
}

const CLOSED: BreakerState = { name: 'closed' };
const RECOVERING: BreakerState = { name: 'recovering' };
/** By how much a cool-off may be longer than asked for. */
export const COOL_OFF_JITTER = 0.2;

/**
 * Decides whether the store is asked. `closed` and `recovering`: it is. `open` and `half-open`: it isn't, but for one
 * probe after each cool-off.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #state: BreakerState = CLOSED;
  #failures = 0;
  #cancelCoolOff = () => {};
  #stopped = false;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** Whether calls go to the store. */
  get letsThrough(): boolean {
    return this.#state === CLOSED || this.#state === RECOVERING;
  }

  /** The store has answered a call. */
  succeeded(): void {
    this.#failures = 0;
  }

  /** A call found the store unavailable. One that was sent before the breaker opened changes nothing any more. */
  failed(error: unknown): void {
    if (!this.letsThrough) return;
    this.#failures++;
    if (this.#failures >= this.#options.failureThreshold) this.trip(error);
  }

  /** Opens at once, whatever the threshold. */
  trip(error: unknown): void {
    if (!this.letsThrough || this.#stopped) return;
    this.#open(error);
  }

  /** Everything is as it was before the outage. */
  recovered(reason: string): void {
    if (this.#state === RECOVERING) this.#become(CLOSED, reason);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelCoolOff();
  }

  #open(error: unknown): void {
    const { clock, coolOffMs, random = Math.random } = this.#options;
    this.#failures = 0;
    const duration = Math.round(coolOffMs * (1 + COOL_OFF_JITTER * random()));
    const until = clock.now() + duration;
    this.#become({ name: 'open', until }, error instanceof Error ? error.message : String(error), error);
    this.#cancelCoolOff = startBackgroundTimer(clock, () => this.#halfOpen(), duration);
  }

  #halfOpen(): void {
    if (this.#stopped || this.#state.name !== 'open') return;
    const probe = this.#options.probe();
    this.#become({ name: 'half-open', probe }, 'the cool-off has passed');
    probe.then(
      () => this.#settle(() => this.#become(RECOVERING, 'the probe was answered')),
      (error: unknown) => this.#settle(() => this.#open(error)),
    );
  }

  #settle(change: () => void): void {
    if (!this.#stopped && this.#state.name === 'half-open') change();
  }

  #become(state: BreakerState, reason: string, error?: unknown): void {
    const previous = this.#state.name;
    this.#state = state;
    this.#options.onChange({ previous, current: state.name, reason, error });
  }
}
