import {
  metrics,
  trace,
  type Attributes,
  type Histogram,
  type Meter,
  type MeterProvider,
  type ObservableCallback,
} from '@opentelemetry/api';
import type { DecisionEvent } from '../core/observer.js';
import { LimiterTally } from '../metrics/limiter-tally.js';
import { DURATION_BUCKETS, METRIC_NAMES, METRICS, type MetricName } from '../metrics/metrics.js';
import { SERVED_BY } from '../metrics/policy-tally.js';
import { TallyingObserver } from '../metrics/tallying-observer.js';

export interface OpenTelemetryObserverOptions {
  /** Where instruments are made. Default: a meter `nestjs-distlimit` of `meterProvider`. */
  meter?: Meter;
  /** Default: the global one, as it is when the observer is made. */
  meterProvider?: MeterProvider;
  /** Whether decisions are told apart by the route's template (`/cats/:id`), never by the path. Default false. */
  routeLabel?: boolean;
  /** Whether a denial is an event of the active span. Default true. */
  spanEvents?: boolean;
  /** Whether that event says whose quota it was: an address or an id. Default false. */
  subjects?: boolean;
}

/**
 * Counts what a limiter does with OpenTelemetry, and marks denials in the active span: `observers: [new
 * OpenTelemetryObserver()]`, after the SDK has been started. It watches one limiter.
 */
export class OpenTelemetryObserver extends TallyingObserver {
  readonly #spanEvents: boolean;
  readonly #withSubjects: boolean;
  readonly #removers: (() => void)[] = [];

  constructor(options: OpenTelemetryObserverOptions = {}) {
    const { meterProvider = metrics, routeLabel = false, spanEvents = true, subjects = false } = options;
    const meter = options.meter ?? meterProvider.getMeter('nestjs-distlimit');
    const durations = durationsOf(meter);
    const attributes = SERVED_BY.map((servedBy): Attributes => ({ served_by: servedBy }));
    const tally = new LimiterTally({
      withRoutes: routeLabel,
      onDuration: (seconds, servedBy) => durations.record(seconds, attributes[servedBy]),
    });
    super(tally);
    this.#spanEvents = spanEvents;
    this.#withSubjects = subjects;
    for (const name of METRIC_NAMES) {
      if (name !== 'evaluation_duration_seconds') this.#observe(meter, name, tally);
    }
  }

  override decision(event: DecisionEvent): void {
    super.decision(event);
    if (this.#spanEvents && event.outcome !== 'allowed') this.#mark(event);
  }

  /** The meter asks no more. */
  close(): void {
    for (const remove of this.#removers.splice(0)) remove();
  }

  #observe(
    meter: Meter,
    name: Exclude<MetricName, 'evaluation_duration_seconds'>,
    tally: LimiterTally,
  ): void {
    const { kind, help, unit } = METRICS[name];
    const options = { description: help, unit };
    const instrument =
      kind === 'gauge'
        ? meter.createObservableGauge(instrumentName(name), options)
        : meter.createObservableCounter(instrumentName(name), options);
    const callback: ObservableCallback = (result) => {
      for (const { labels, value } of tally.read(name)) result.observe(value, labels);
    };
    instrument.addCallback(callback);
    this.#removers.push(() => instrument.removeCallback(callback));
  }

  #mark({ verdict, policy, cost, outcome }: DecisionEvent): void {
    const span = trace.getActiveSpan();
    if (span?.isRecording() !== true) return;
    const { retryAfterMs, limit, remaining, servedBy, subject } = verdict;
    span.addEvent(outcome === 'denied' ? 'rate_limit.denied' : 'rate_limit.shadow_denied', {
      'rate_limit.policy': policy.name,
      'rate_limit.algorithm': policy.algorithm,
      'rate_limit.served_by': servedBy,
      'rate_limit.limit': limit,
      'rate_limit.remaining': remaining,
      'rate_limit.cost': cost,
      // No number of milliseconds stands for "never".
      ...(Number.isFinite(retryAfterMs) && { 'rate_limit.retry_after_ms': retryAfterMs }),
      ...(this.#withSubjects && { 'rate_limit.subject': subject }),
    });
  }
}

function durationsOf(meter: Meter): Histogram {
  const { help, unit } = METRICS.evaluation_duration_seconds;
  return meter.createHistogram(instrumentName('evaluation_duration_seconds'), {
    description: help,
    unit,
    advice: { explicitBucketBoundaries: [...DURATION_BUCKETS] },
  });
}

/** `decisions_total` is `distlimit.decisions`: units and kinds are no parts of names here. */
export function instrumentName(name: MetricName): string {
  return `distlimit.${name.replace(/(_seconds)?(_total)?$/, '')}`;
}
