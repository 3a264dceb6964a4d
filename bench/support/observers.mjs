/** Each is what an application adds to be told of decisions: to the limiter's options, or to its own imports. */
export const OBSERVERS = {
  'no observer': async () => ({}),
  // The same once more: how far two processes differ that do the same.
  'no observer, again': async () => ({}),
  'an observer of the breaker': async () => ({ observers: [{ breakerChange() {} }] }),
  'an observer that counts': async () => {
    let decisions = 0;
    return { observers: [{ decision: () => void decisions++ }] };
  },
  prometheus: async () => {
    const { PrometheusModule } = await import('@willsoto/nestjs-prometheus');
    const { RateLimitPrometheusModule } = await import('nestjs-distlimit/prometheus');
    return { imports: [PrometheusModule.register(), RateLimitPrometheusModule.forRoot()] };
  },
  // The API's own meter, which keeps nothing: what is left is this library's part.
  'opentelemetry, no SDK': async () => {
    const { OpenTelemetryObserver } = await import('nestjs-distlimit/opentelemetry');
    return { observers: [new OpenTelemetryObserver()] };
  },
  opentelemetry: async () => {
    const { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } =
      await import('@opentelemetry/sdk-metrics');
    const { OpenTelemetryObserver } = await import('nestjs-distlimit/opentelemetry');
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const meterProvider = new MeterProvider({ readers: [reader] });
    return { observers: [new OpenTelemetryObserver({ meterProvider })] };
  },
};
