import { Module, type DynamicModule, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import {
  getToken,
  makeCounterProvider,
  makeGaugeProvider,
  makeHistogramProvider,
} from '@willsoto/nestjs-prometheus';
import type { Metric } from 'prom-client';
import { METRIC_NAMES, METRICS, type MetricName } from '../metrics/metrics.js';
import { RateLimiterService } from '../nest/rate-limiter.service.js';
import { configurationOf, getOrCreate } from './metric-family.js';
import {
  completePrometheusOptions,
  type CompletedPrometheusOptions,
  type PrometheusObserverOptions,
} from './prometheus-options.js';
import { PROMETHEUS_PARTS, PrometheusObserver, type PrometheusParts } from './prometheus-observer.js';

/**
 * Metrics of the application's limiter, in the registry that `PrometheusModule` of `@willsoto/nestjs-prometheus`
 * serves. Import it beside `RateLimitModule` and `PrometheusModule`, in any order. Each metric can be injected with
 * `@InjectMetric()`.
 */
@Module({})
export class RateLimitPrometheusModule implements OnApplicationShutdown {
  readonly #observer: PrometheusObserver;
  readonly #stop: () => void;

  /** @internal */
  constructor(limiter: RateLimiterService, observer: PrometheusObserver) {
    this.#observer = observer;
    this.#stop = limiter.observe(observer);
  }

  /** @throws RateLimitConfigError for the first option that is wrong */
  static forRoot(options: PrometheusObserverOptions = {}): DynamicModule {
    const completed = completePrometheusOptions(options);
    const tokens = METRIC_NAMES.map((name) => getToken(completed.prefix + name));
    return {
      module: RateLimitPrometheusModule,
      providers: [
        ...METRIC_NAMES.map((name) => metricProvider(name, completed)),
        {
          provide: PROMETHEUS_PARTS,
          inject: tokens,
          useFactory: (...metrics: Metric[]): PrometheusParts => ({
            options,
            metrics: new Map(METRIC_NAMES.map((name, i) => [name, metrics[i]!])),
          }),
        },
        PrometheusObserver,
      ],
      exports: [PrometheusObserver, ...tokens],
    };
  }

  onApplicationShutdown(): void {
    this.#stop();
    this.#observer.close();
  }
}

const PROVIDER_MAKERS = {
  counter: makeCounterProvider,
  gauge: makeGaugeProvider,
  histogram: makeHistogramProvider,
};

/** In prom-client's own registry metrics are made, and found again, as any that `@willsoto/nestjs-prometheus` makes. */
function metricProvider(name: MetricName, options: CompletedPrometheusOptions): Provider {
  const { registry } = options;
  const configuration = configurationOf(name, options);
  if (registry !== undefined) {
    return { provide: getToken(configuration.name), useFactory: () => getOrCreate(name, options, registry) };
  }
  return PROVIDER_MAKERS[METRICS[name].kind](configuration);
}
