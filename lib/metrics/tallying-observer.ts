import type {
  BreakerChangeEvent,
  DecisionEvent,
  DriverErrorEvent,
  ObservedLimiter,
  PolicyChangeEvent,
  RateLimitObserver,
  ReconcileEvent,
} from '../core/observer.js';
import type { LimiterTally } from './limiter-tally.js';

/** Counts in a tally what it is told; whoever extends it says where that is read. */
export abstract class TallyingObserver implements RateLimitObserver {
  readonly timesDecisions = true;
  readonly #tally: LimiterTally;

  constructor(tally: LimiterTally) {
    this.#tally = tally;
  }

  attached(limiter: ObservedLimiter): void {
    this.#tally.attached(limiter);
  }

  decision(event: DecisionEvent): void {
    this.#tally.decision(event);
  }

  policyChange(event: PolicyChangeEvent): void {
    this.#tally.policyChange(event);
  }

  driverError(event: DriverErrorEvent): void {
    this.#tally.driverError(event);
  }

  breakerChange(event: BreakerChangeEvent): void {
    this.#tally.breakerChange(event);
  }

  reconcile(event: ReconcileEvent): void {
    this.#tally.reconcile(event);
  }
}
