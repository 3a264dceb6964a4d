import { Counter, Gauge, Histogram, type Metric, type Registry } from 'prom-client';
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

/** The metric that a registry has under that name, or a new one. */
export function getOrCreate(name: MetricName, options: MetricOptions, registry: Registry): Metric {
  const configuration = configurationOf(name, options);
  const existing = registry.getSingleMetric(configuration.name);
  if (existing !== undefined) return existing as Metric;
  const whole = { ...configuration, registers: [registry] };
  switch (METRICS[name].kind) {
    case 'counter':
      return new Counter(whole);
    case 'gauge':
      return new Gauge(whole);
    case 'histogram':
      return new Histogram(whole);
  }
}

/** What prom-client keeps of a metric, and does not declare. */
interface Internals {
  readonly name: string;
  readonly type?: string;
  readonly labelNames?: readonly string[];
  collect?: () => void | Promise<void>;
  [SOURCES]?: Set<() => void>;
}

/** Where the limiters stand that add to a metric: for all copies of this library in a process. */
const SOURCES: unique symbol = Symbol.for('nestjs-distlimit metric sources') as never;

/**
 * Checks that a metric, which another application of the process may have made, is the one that is meant.
 * @throws RateLimitConfigError where somebody else's has the name
 */
export function requireFamily(metric: Metric, name: MetricName, routeLabel: boolean): void {
  const { type, labelNames = [], name: fullName } = metric as unknown as Internals;
  const labels = labelsOf(name, routeLabel);
  if (type === METRICS[name].kind && labelNames.join() === labels.join()) return;
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
