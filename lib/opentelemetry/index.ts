export { OpenTelemetryObserver, type OpenTelemetryObserverOptions } from './opentelemetry-observer.js';
