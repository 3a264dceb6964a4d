export { PrometheusObserver } from './prometheus-observer.js';
export type { PrometheusObserverOptions } from './prometheus-options.js';
export { RateLimitPrometheusModule } from './prometheus.module.js';
