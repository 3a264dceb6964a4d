/** One metric, as both Prometheus and OpenTelemetry know it. */
export interface MetricDefinition {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** In UCUM, as OpenTelemetry wants it; annotations in braces count things. */
  readonly unit: string;
}

const counter = (help: string, labels: readonly string[], unit: string): MetricDefinition => ({
  kind: 'counter',
  help,
  labels,
  unit,
});

const gauge = (help: string, labels: readonly string[], unit: string): MetricDefinition => ({
  kind: 'gauge',
  help,
  labels,
  unit,
});

/**
 * All metrics, by the names they have in Prometheus behind the prefix. No label holds a subject, an address or a path:
 * how many series there are follows from the policies (and the routes, where they are a label), not from the clients.
 */
export const METRICS = {
  decisions_total: counter(
    'Decisions by policy, algorithm, where they were made, and outcome: allowed, denied, or shadow-denied',
    ['policy', 'algorithm', 'served_by', 'outcome'],
    '{decision}',
  ),
  requests_total: counter('Decisions, whatever their outcome', ['policy'], '{decision}'),
  denied_total: counter('Decisions that denied, in shadow mode not', ['policy'], '{decision}'),
  near_limit_total: counter(
    'Decisions that allowed and left less than 20 % of the quota',
    ['policy'],
    '{decision}',
  ),
  fallback_decisions_total: counter('Decisions made without the shared store', ['policy'], '{decision}'),
  deny_cache_hits_total: counter('Denials repeated without asking Redis', ['policy'], '{decision}'),
  evaluation_duration_seconds: {
    kind: 'histogram',
    help: 'How long deciding took, waiting for the store included',
    labels: ['served_by'],
    unit: 's',
  },
  policy_limit: gauge('The limit of the policy, in requests a window', ['policy'], '{request}'),
  policy_version: gauge(
    '1 at start-up, and one more with each change of the policy',
    ['policy'],
    '{version}',
  ),
  breaker_state: gauge(
    '1 for the state that the circuit breaker is in, 0 for the others',
    ['state'],
    '{state}',
  ),
  breaker_transitions_total: counter('Changes of the circuit breaker', ['from', 'to'], '{transition}'),
  fleet_size: gauge('How many instances share the limits, as this one knows', [], '{instance}'),
  keys_held: gauge('Counters and blocks held in this process', [], '{key}'),
  evictions_total: counter('Counters that made room for others before they had expired', [], '{key}'),
  driver_errors_total: counter('Failures of the driver', ['driver'], '{error}'),
  reconciled_total: counter(
    'Cost let through without Redis that it was charged with afterwards',
    [],
    '{request}',
  ),
  dropped_total: counter('Cost let through without Redis that it will not hear of', [], '{request}'),
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;

export const METRIC_NAMES = Object.keys(METRICS) as readonly MetricName[];

/** The labels of a metric. With routes, decisions are told apart by them too. */
export function labelsOf(name: MetricName, withRoutes: boolean): readonly string[] {
  const { labels } = METRICS[name];
  return withRoutes && name === 'decisions_total' ? [...labels, 'route'] : labels;
}

/** Upper bounds of the histogram, in seconds: from 1 µs, a decision in memory, to 100 ms, the wait for Redis. */
export const DURATION_BUCKETS: readonly number[] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
  .flatMap((decade) => [decade, 2.5 * decade, 5 * decade])
  .concat(1e-1)
  // As people write them: 2.5 * 1e-5 is not 2.5e-5.
  .map((bound) => Number(bound.toPrecision(2)));
