import type {
  BreakerChangeEvent,
  DecisionEvent,
  DriverErrorEvent,
  ObservedLimiter,
  PolicyChangeEvent,
  ReconcileEvent,
} from '../core/observer.js';
import type { MetricName } from './metrics.js';
import { PolicyTally, servedByIndex, type OutcomeName, type ServedByName } from './policy-tally.js';

/** One value of one metric. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const BREAKER_STATES = ['closed', 'open', 'half-open', 'recovering'] as const;
const NO_LABELS = {};

export interface LimiterTallyOptions {
  /** Whether decisions are told apart by the route's template. */
  readonly withRoutes: boolean;
  /** Told how long each decision took, and where it was made: see {@link servedByIndex}. */
  readonly onDuration: (seconds: number, servedBy: number) => void;
}

/**
 * Counts what one limiter does, in plain numbers: a decision adds to a few, and only who reads metrics makes labels of
 * them.
 */
export class LimiterTally {
  readonly #options: LimiterTallyOptions;
  readonly #policies = new Map<string, PolicyTally>();
  readonly #transitions = new Map<string, { from: string; to: string; count: number }>();
  readonly #errors = new Map<string, number>();
  #limiter: ObservedLimiter | undefined;
  #reconciled = 0;
  #dropped = 0;

  constructor(options: LimiterTallyOptions) {
    this.#options = options;
  }

  attached(limiter: ObservedLimiter): void {
    this.#limiter = limiter;
  }

  decision(event: DecisionEvent): void {
    const { withRoutes, onDuration } = this.#options;
    this.#policy(event.policy.name).add(event, withRoutes ? (event.call?.route ?? '') : '');
    if (event.durationMs !== undefined)
      onDuration(event.durationMs / 1000, servedByIndex(event.verdict.servedBy));
  }

  policyChange({ previous, current }: PolicyChangeEvent): void {
    const tally = this.#policy(current.name);
    if (previous !== undefined) tally.version++;
  }

  driverError({ driver }: DriverErrorEvent): void {
    this.#errors.set(driver, (this.#errors.get(driver) ?? 0) + 1);
  }

  breakerChange({ previous, current }: BreakerChangeEvent): void {
    const id = `${previous} ${current}`;
    const known = this.#transitions.get(id);
    if (known === undefined) this.#transitions.set(id, { from: previous, to: current, count: 1 });
    else known.count++;
  }

  reconcile({ reconciled, dropped }: ReconcileEvent): void {
    this.#reconciled += reconciled;
    this.#dropped += dropped;
  }

  /** What a metric is now; a histogram has no such values. */
  read(name: Exclude<MetricName, 'evaluation_duration_seconds'>): readonly Sample[] {
    switch (name) {
      case 'decisions_total':
        return this.#decisions();
      case 'requests_total':
        return this.#total(() => true);
      case 'denied_total':
        return this.#total((outcome) => outcome === 'denied');
      case 'fallback_decisions_total':
        return this.#total((_outcome, servedBy) => servedBy === 'fallback');
      case 'deny_cache_hits_total':
        return this.#total((_outcome, servedBy) => servedBy === 'deny-cache');
      case 'near_limit_total':
        return this.#perPolicy((tally) => tally.nearLimit);
      case 'policy_version':
        return this.#perPolicy((tally) => tally.version);
      case 'policy_limit':
        return (this.#limiter?.policies() ?? []).map((policy) =>
          sample(policy.limit, { policy: policy.name }),
        );
      case 'breaker_transitions_total':
        return [...this.#transitions.values()].map(({ from, to, count }) => sample(count, { from, to }));
      case 'driver_errors_total':
        return this.#driverErrors();
      case 'reconciled_total':
        return [sample(this.#reconciled)];
      case 'dropped_total':
        return [sample(this.#dropped)];
      default:
        return this.#status(name);
    }
  }

  #status(name: 'breaker_state' | 'fleet_size' | 'keys_held' | 'evictions_total'): readonly Sample[] {
    const status = this.#limiter?.status();
    if (status === undefined) return [];
    const { breaker, fleetSize, keys, evictions } = status;
    if (name === 'keys_held') return [sample(keys)];
    if (name === 'evictions_total') return [sample(evictions)];
    if (name === 'fleet_size') return fleetSize === null ? [] : [sample(fleetSize)];
    if (breaker === null) return [];
    return BREAKER_STATES.map((state) => sample(state === breaker ? 1 : 0, { state }));
  }

  /** A zero to rise from, as long as there was none. */
  #driverErrors(): readonly Sample[] {
    const driver = this.#limiter?.status().driver;
    if (driver !== undefined && !this.#errors.has(driver)) this.#errors.set(driver, 0);
    return [...this.#errors].map(([name, count]) => sample(count, { driver: name }));
  }

  #decisions(): Sample[] {
    const { withRoutes } = this.#options;
    const samples: Sample[] = [];
    for (const [policy, tally] of this.#policies) {
      for (const counts of tally.series) {
        const { algorithm, route } = counts;
        for (const { outcome, servedBy, count } of counts.entries()) {
          const labels = { policy, algorithm, served_by: servedBy, outcome };
          samples.push(sample(count, withRoutes ? { ...labels, route } : labels));
        }
      }
    }
    return samples;
  }

  #total(isCounted: (outcome: OutcomeName, servedBy: ServedByName) => boolean): Sample[] {
    return this.#perPolicy((tally) => tally.total(isCounted));
  }

  /** Every policy that there is, also where nothing has happened yet: an alert needs the zero to rise from. */
  #perPolicy(value: (tally: PolicyTally) => number): Sample[] {
    for (const { name } of this.#limiter?.policies() ?? []) this.#policy(name);
    return [...this.#policies].map(([policy, tally]) => sample(value(tally), { policy }));
  }

  #policy(name: string): PolicyTally {
    let tally = this.#policies.get(name);
    if (tally === undefined) this.#policies.set(name, (tally = new PolicyTally()));
    return tally;
  }
}

function sample(value: number, labels: Readonly<Record<string, string>> = NO_LABELS): Sample {
  return { labels, value };
}
