import type { Registry } from 'prom-client';
import * as v from 'valibot';
import { boolean, rule, validate } from '../core/validation.js';
import { DURATION_BUCKETS } from '../metrics/metrics.js';

export interface PrometheusObserverOptions {
  /** What every name begins with; default `distlimit_`. */
  prefix?: string;
  /** Whether decisions are told apart by the route's template (`/cats/:id`), never by the path. Default false. */
  routeLabel?: boolean;
  /** Upper bounds of the histogram of evaluation times, in seconds, ascending; default 1 µs to 100 ms. */
  buckets?: readonly number[];
  /** Default: prom-client's own, which `PrometheusModule` serves. */
  registry?: Registry;
}

const schema = v.strictObject({
  prefix: v.optional(
    rule(
      'RL_INVALID_OPTION',
      'the beginning of a metric name: letters, digits, _ and :, no digit first',
      (value) =>
        typeof value === 'string' && /^([a-zA-Z_:][a-zA-Z0-9_:]*)?$/.test(value) ? value : undefined,
    ),
    'distlimit_',
  ),
  routeLabel: v.optional(boolean(), false),
  buckets: v.optional(
    rule('RL_INVALID_OPTION', 'ascending numbers of seconds, at least one', (value) =>
      isAscending(value) ? value : undefined,
    ),
    () => [...DURATION_BUCKETS],
  ),
  registry: v.optional(
    rule('RL_INVALID_OPTION', "a Registry of prom-client's", (value) =>
      typeof (value as Partial<Registry> | null)?.registerMetric === 'function'
        ? (value as Registry)
        : undefined,
    ),
  ),
});

export type CompletedPrometheusOptions = v.InferOutput<typeof schema>;

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completePrometheusOptions(options: PrometheusObserverOptions): CompletedPrometheusOptions {
  return validate(schema, options, 'prometheus');
}

function isAscending(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((bound, i) => Number.isFinite(bound) && bound > (i === 0 ? 0 : value[i - 1]))
  );
}
