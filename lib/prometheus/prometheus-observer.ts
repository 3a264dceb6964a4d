import { Inject, Injectable, Optional } from '@nestjs/common';
import { register, type Counter, type Gauge, type Histogram, type Metric } from 'prom-client';
import { DurationTally } from '../metrics/duration-tally.js';
import { LimiterTally, type Sample } from '../metrics/limiter-tally.js';
import { METRIC_NAMES, METRICS, type MetricName } from '../metrics/metrics.js';
import { SERVED_BY } from '../metrics/policy-tally.js';
import { TallyingObserver } from '../metrics/tallying-observer.js';
import { addObservations, addSource, getOrCreate, requireFamily } from './metric-family.js';
import { completePrometheusOptions, type PrometheusObserverOptions } from './prometheus-options.js';

/** The options, and the metrics where `@willsoto/nestjs-prometheus` has made them. */
export const PROMETHEUS_PARTS = Symbol('nestjs-distlimit prometheus parts');

export interface PrometheusParts {
  readonly options: PrometheusObserverOptions;
  readonly metrics: ReadonlyMap<MetricName, Metric>;
}

/**
 * Counts what a limiter does, as metrics of prom-client: `observers: [PrometheusObserver]`, or an instance of it. With
 * `RateLimitPrometheusModule` it need not be named at all. It watches one limiter.
 */
@Injectable()
export class PrometheusObserver extends TallyingObserver {
  readonly #removers: (() => void)[] = [];
  readonly #flushes: (() => void)[] = [];

  /** @throws RateLimitConfigError where an option is wrong, or a metric of another kind has one of the names */
  constructor(options?: PrometheusObserverOptions);
  /** @internal */
  constructor(@Optional() @Inject(PROMETHEUS_PARTS) given: PrometheusObserverOptions | PrometheusParts = {}) {
    const made = 'metrics' in given ? given : { options: given, metrics: undefined };
    const options = completePrometheusOptions(made.options);
    const metricOf = (name: MetricName) =>
      made.metrics?.get(name) ?? getOrCreate(name, options, options.registry ?? register);
    const durations = SERVED_BY.map(() => new DurationTally(options.buckets));
    const tally = new LimiterTally({
      withRoutes: options.routeLabel,
      onDuration: (seconds, servedBy) => durations[servedBy]!.add(seconds),
    });
    super(tally);
    for (const name of METRIC_NAMES) {
      const metric = metricOf(name);
      requireFamily(metric, name, options);
      const flush =
        name === 'evaluation_duration_seconds'
          ? filling(metric, durations)
          : (METRICS[name].kind === 'gauge' ? setting : raising)(metric, () => tally.read(name));
      this.#flushes.push(flush);
      this.#removers.push(addSource(metric, flush));
    }
  }

  /** Leaves in the registry what was counted, and is asked no more. */
  close(): void {
    for (const remove of this.#removers.splice(0)) remove();
    for (const flush of this.#flushes.splice(0)) flush();
  }
}

/** Adds what has come since it was last called: other limiters may count in the same metric. */
function raising(metric: Metric, read: () => readonly Sample[]): () => void {
  const counter = metric as Pick<Counter, 'inc'>;
  const raised = new Map<string, number>();
  return () => {
    for (const { labels, value } of read()) {
      const id = Object.values(labels).join('\n');
      const before = raised.get(id);
      if (before === value) continue;
      counter.inc(labels, value - (before ?? 0));
      raised.set(id, value);
    }
  };
}

function setting(metric: Metric, read: () => readonly Sample[]): () => void {
  const gauge = metric as Pick<Gauge, 'set'>;
  return () => {
    for (const { labels, value } of read()) gauge.set(labels, value);
  };
}

function filling(metric: Metric, tallies: readonly DurationTally[]): () => void {
  const histogram = metric as Pick<Histogram, 'zero'>;
  return () => {
    for (const [i, tally] of tallies.entries())
      addObservations(histogram, { served_by: SERVED_BY[i]! }, tally.bounds, tally.take());
  };
}
