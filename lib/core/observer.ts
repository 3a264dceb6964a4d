import type { DiagnosticSink } from './diagnostics.js';
import { isPromiseLike } from './maybe-promise.js';
import type { Policy } from './policy.js';
import type { Verdict } from './verdict.js';

/** One decision. In shadow mode a policy's own denial is `shadow-denied`, and its verdict is allowed. */
export interface DecisionEvent {
  readonly verdict: Verdict;
  readonly policy: Policy;
  readonly cost: number;
  readonly outcome: 'allowed' | 'denied' | 'shadow-denied';
}

export interface PolicyChangeEvent {
  readonly previous: Policy | undefined;
  readonly current: Policy;
}

/** A counter made room for another before it had expired: whoever it belonged to starts afresh. */
export interface EvictionEvent {
  readonly policy: string;
  readonly subject: string;
  /** Milliseconds it would have lived on. */
  readonly remainingMs: number;
}

export interface DriverErrorEvent {
  readonly driver: string;
  readonly error: unknown;
}

/** The hybrid driver's circuit breaker has changed. */
export interface BreakerChangeEvent {
  readonly driver: string;
  readonly previous: 'closed' | 'open' | 'half-open' | 'recovering';
  readonly current: 'closed' | 'open' | 'half-open' | 'recovering';
  /** In words: what failed, or what had to be waited for. */
  readonly reason: string;
  /** What failed, where something did. */
  readonly error: unknown;
}

/** Told what happens. Every method is optional; one that throws harms no call. */
export interface RateLimitObserver {
  decision?(event: DecisionEvent): void;
  policyChange?(event: PolicyChangeEvent): void;
  eviction?(event: EvictionEvent): void;
  driverError?(event: DriverErrorEvent): void;
  breakerChange?(event: BreakerChangeEvent): void;
}

/** Passes events on to all observers. Ask {@link listensToDecisions} before an event of the hot path is built. */
export class ObserverHub {
  readonly #report: DiagnosticSink;
  #observers: readonly RateLimitObserver[] = [];
  #decisions = false;

  constructor(report: DiagnosticSink, observers: readonly RateLimitObserver[] = []) {
    this.#report = report;
    this.add(observers);
  }

  add(observers: readonly RateLimitObserver[]): void {
    this.#observers = [...this.#observers, ...observers];
    this.#decisions = this.#observers.some((observer) => observer.decision !== undefined);
  }

  /** Whether anybody listens to decisions: the one event of the hot path. */
  get listensToDecisions(): boolean {
    return this.#decisions;
  }

  emit<K extends keyof RateLimitObserver>(
    kind: K,
    event: Parameters<NonNullable<RateLimitObserver[K]>>[0],
  ): void {
    for (const observer of this.#observers) {
      try {
        const told: unknown = (observer[kind] as ((e: typeof event) => unknown) | undefined)?.call(
          observer,
          event,
        );
        if (isPromiseLike(told)) void told.then(undefined, (error) => this.#failed(kind, error));
      } catch (error) {
        this.#failed(kind, error);
      }
    }
  }

  /** An observer's trouble is its own: the call it watches goes on. */
  #failed(kind: keyof RateLimitObserver, error: unknown): void {
    this.#report({
      code: 'RL_OBSERVER_FAILED',
      message: `an observer's ${kind}() failed: ${String(error)}`,
    });
  }
}
