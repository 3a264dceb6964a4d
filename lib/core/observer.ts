import type { Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { DiagnosticSink } from './diagnostics.js';
import { messageOf } from './errors.js';
import type { RateLimiterStatus } from './limiter-options.js';
import { isPromiseLike } from './maybe-promise.js';
import type { Policy } from './policy.js';
import type { Verdict } from './verdict.js';

/** One decision. In shadow mode a policy's own denial is `shadow-denied`, and its verdict is allowed. */
export interface DecisionEvent {
  readonly verdict: Verdict;
  readonly policy: Policy;
  readonly cost: number;
  readonly outcome: 'allowed' | 'denied' | 'shadow-denied';
  /** The policy's own numbers, or what a resolver gave for this subject. */
  readonly quota: Quota;
  /** The policy's `onUnavailable` has answered, because the store could not. */
  readonly storeFailed: boolean;
  /** The call, where one brought the charge: not where the service or a limiter was asked by hand. */
  readonly call: CallContext | undefined;
  /**
   * How long deciding took, in milliseconds, waiting for the store included; of charges that were decided together, all
   * of them. Measured only while an observer {@link RateLimitObserver.timesDecisions}.
   */
  readonly durationMs: number | undefined;
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

/** The hybrid driver has settled with Redis some of what was let through without it. In units of cost. */
export interface ReconcileEvent {
  readonly driver: string;
  /** What Redis has been charged with. */
  readonly reconciled: number;
  /**
   * What Redis will not hear of: its window had ended meanwhile, its counter made room for others or could not be
   * charged, or the driver settles nothing (`fallback: 'full'`).
   */
  readonly dropped: number;
}

/** What an observer can ask the limiter that it watches. */
export interface ObservedLimiter {
  status(): RateLimiterStatus;
  /** Every policy as it is now. */
  policies(): readonly Policy[];
}

/** Told what happens. Every method is optional; one that throws harms no call. */
export interface RateLimitObserver {
  /** Whether decisions are timed for this observer: `durationMs` of the event. Asked when it is added. */
  readonly timesDecisions?: boolean;
  /** Called once, before anything else, with what it watches. */
  attached?(limiter: ObservedLimiter): void;
  decision?(event: DecisionEvent): void;
  policyChange?(event: PolicyChangeEvent): void;
  eviction?(event: EvictionEvent): void;
  driverError?(event: DriverErrorEvent): void;
  breakerChange?(event: BreakerChangeEvent): void;
  reconcile?(event: ReconcileEvent): void;
  /** Called last, at shutdown, where the module made the observer of its class; else whoever made it lets go of it. */
  close?(): void;
}

type EventName = Exclude<keyof RateLimitObserver, 'timesDecisions' | 'attached' | 'close'>;

/** Passes events on to all observers. Ask {@link listensToDecisions} before an event of the hot path is built. */
export class ObserverHub {
  readonly #report: DiagnosticSink;
  #observers: readonly RateLimitObserver[];
  #decisions = false;
  #times = false;
  #limiter: ObservedLimiter | undefined;

  constructor(report: DiagnosticSink, observers: readonly RateLimitObserver[] = []) {
    this.#report = report;
    this.#observers = [...new Set(observers)];
    this.#look();
  }

  /** Shows observers, those that come later included, what they watch. */
  watch(limiter: ObservedLimiter): void {
    this.#limiter = limiter;
    for (const observer of this.#observers) this.#attach(observer);
  }

  /** One that is there already is not told twice. */
  add(observers: readonly RateLimitObserver[]): void {
    for (const observer of observers) {
      if (this.#observers.includes(observer)) continue;
      this.#observers = [...this.#observers, observer];
      this.#attach(observer);
    }
    this.#look();
  }

  remove(observer: RateLimitObserver): void {
    this.#observers = this.#observers.filter((other) => other !== observer);
    this.#look();
  }

  /** Lets go of an observer that nobody else will. */
  close(observer: RateLimitObserver): void {
    this.remove(observer);
    this.#tell(observer, 'close', undefined);
  }

  /** Whether anybody listens to decisions: the one event of the hot path. */
  get listensToDecisions(): boolean {
    return this.#decisions;
  }

  /** Whether anybody wants to know how long decisions take. */
  get timesDecisions(): boolean {
    return this.#times;
  }

  emit<K extends EventName>(kind: K, event: Parameters<NonNullable<RateLimitObserver[K]>>[0]): void {
    for (const observer of this.#observers) this.#tell(observer, kind, event);
  }

  #look(): void {
    const listeners = this.#observers.filter((observer) => observer.decision !== undefined);
    this.#decisions = listeners.length > 0;
    this.#times = listeners.some((observer) => observer.timesDecisions === true);
  }

  #attach(observer: RateLimitObserver): void {
    if (this.#limiter !== undefined) this.#tell(observer, 'attached', this.#limiter);
  }

  #tell(observer: RateLimitObserver, kind: EventName | 'attached' | 'close', event: unknown): void {
    try {
      const told: unknown = (observer[kind] as ((e: unknown) => unknown) | undefined)?.call(observer, event);
      if (isPromiseLike(told)) void told.then(undefined, (error) => this.#failed(kind, error));
    } catch (error) {
      this.#failed(kind, error);
    }
  }

  /** An observer's trouble is its own: the call it watches goes on. */
  #failed(kind: EventName | 'attached' | 'close', error: unknown): void {
    this.#report({
      code: 'RL_OBSERVER_FAILED',
      message: `an observer's ${kind}() failed: ${messageOf(error)}`,
    });
  }
}
