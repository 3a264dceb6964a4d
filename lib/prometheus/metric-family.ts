import {
  Counter,
  Gauge,
  Histogram,
  type CounterConfiguration,
  type GaugeConfiguration,
  type HistogramConfiguration,
  type Metric,
  type Registry,
} from 'prom-client';
import { RateLimitConfigError } from '../core/errors.js';
import { labelsOf, METRICS, type MetricName } from '../metrics/metrics.js';

/** How metrics are made. */
export interface MetricOptions {
  readonly prefix: string;
  readonly routeLabel: boolean;
  readonly buckets: readonly number[];
}

/** What prom-client is told of a metric. */
export function configurationOf(name: MetricName, { prefix, routeLabel, buckets }: MetricOptions) {
  const { kind, help } = METRICS[name];
  return {
    name: prefix + name,
    help,
    labelNames: [...labelsOf(name, routeLabel)],
    ...(kind === 'histogram' && { buckets: [...buckets] }),
  };
}

const MAKERS = {
  counter: (options: CounterConfiguration<string>): Metric => new Counter(options),
  gauge: (options: GaugeConfiguration<string>): Metric => new Gauge(options),
  histogram: (options: HistogramConfiguration<string>): Metric => new Histogram(options),
};

/** The metric that a registry has under that name, or a new one. */
export function getOrCreate(name: MetricName, options: MetricOptions, registry: Registry): Metric {
  const configuration = configurationOf(name, options);
  const existing = registry.getSingleMetric(configuration.name);
  if (existing !== undefined) return existing;
  return MAKERS[METRICS[name].kind]({ ...configuration, registers: [registry] });
}

/** What prom-client keeps of a metric, and does not declare. */
interface Internals {
  readonly name: string;
  readonly type?: string;
  readonly labelNames?: readonly string[];
  readonly upperBounds?: readonly number[];
  collect?: () => void | Promise<void>;
  /** A histogram's, by labels. Counts are those of each bucket alone. */
  readonly hashMap: Record<string, HistogramEntry>;
  [SOURCES]?: Set<() => void>;
}

interface HistogramEntry {
  readonly labels: Record<string, string>;
  readonly bucketValues: Record<number, number>;
  sum: number;
  count: number;
}

/** Where the limiters stand that add to a metric: for all copies of this library in a process. */
const SOURCES: unique symbol = Symbol.for('nestjs-distlimit metric sources') as never;

/**
 * Checks that a metric, which another application of the process may have made, is the one that is meant.
 * @throws RateLimitConfigError where somebody else's has the name
 */
export function requireFamily(
  metric: Metric,
  name: MetricName,
  { routeLabel, buckets }: MetricOptions,
): void {
  const { type, labelNames = [], upperBounds, name: fullName } = metric as unknown as Internals;
  const labels = labelsOf(name, routeLabel);
  const isMeant = type === METRICS[name].kind && labelNames.join() === labels.join();
  if (isMeant && (upperBounds === undefined || upperBounds.join() === buckets.join())) return;
  if (isMeant) {
    throw new RateLimitConfigError({
      code: 'RL_INVALID_OPTION',
      path: 'prometheus.buckets',
      expected: `those that ${fullName} has in this registry: ${upperBounds?.join(', ')}`,
      received: buckets,
    });
  }
  throw new RateLimitConfigError({
    code: 'RL_INVALID_OPTION',
    path: 'prometheus.prefix',
    expected: `a prefix that makes names of its own: ${fullName} is there already, as a ${type} with the labels [${labelNames.join(', ')}] instead of a ${METRICS[name].kind} with [${labels.join(', ')}]`,
    received: fullName.slice(0, -name.length),
  });
}

/** Has a source asked each time the metric is read, until the function that is returned is called. */
export function addSource(metric: Metric, source: () => void): () => void {
  const internals = metric as unknown as Internals;
  internals[SOURCES] ??= collectFrom(internals);
  const sources = internals[SOURCES];
  sources.add(source);
  return () => sources.delete(source);
}

function collectFrom(metric: Internals): Set<() => void> {
  const sources = new Set<() => void>();
  const { collect } = metric;
  metric.collect = () => {
    for (const source of sources) source();
    return collect?.call(metric);
  };
  return sources;
}

/**
 * Adds many observations at once, which prom-client has no method for: one costs it more than a decision in memory
 * takes.
 *
 * @param counts how many there were in each bucket, and above the last one
 */
export function addObservations(
  histogram: Pick<Histogram, 'zero'>,
  labels: Record<string, string>,
  bounds: readonly number[],
  { counts, sum }: { readonly counts: Float64Array; readonly sum: number },
): void {
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return;
  const { hashMap } = histogram as unknown as Internals;
  const entryOf = () =>
    Object.values(hashMap).find((entry) =>
      Object.keys(labels).every((name) => entry.labels[name] === labels[name]),
    );
  if (entryOf() === undefined) histogram.zero(labels);
  const entry = entryOf()!;
  bounds.forEach((bound, i) => (entry.bucketValues[bound]! += counts[i]!));
  entry.sum += sum;
  entry.count += total;
}
