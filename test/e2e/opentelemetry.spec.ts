import { Controller, Get, Param } from '@nestjs/common';
import { context, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { limiterBuilder, RateLimit, RateLimitModule } from 'nestjs-distlimit';
import { OpenTelemetryObserver, type OpenTelemetryObserverOptions } from 'nestjs-distlimit/opentelemetry';
import { ManualClock } from 'nestjs-distlimit/testing';
import { METRIC_NAMES } from '../../lib/metrics/metrics.js';
import { instrumentName } from '../../lib/opentelemetry/opentelemetry-observer.js';
import { AsyncLocalContext } from '../support/async-local-context.js';
import { closeApps, startApp, statuses } from '../support/http-app.js';

const POLICIES = { cats: { limit: 2, window: '1m', algorithm: 'fixed-window' } } as const;

@Controller('cats')
class Cats {
  @Get(':id')
  @RateLimit('cats')
  one(@Param('id') id: string) {
    return id;
  }
}

let exporter: InMemoryMetricExporter;
let provider: MeterProvider;

beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  provider = new MeterProvider({ readers: [reader] });
});
afterEach(async () => {
  await closeApps();
  await provider.shutdown();
});

async function collected(): Promise<Map<string, MetricData>> {
  exporter.reset();
  await provider.forceFlush();
  const data = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  return new Map(data.map((metric) => [metric.descriptor.name, metric]));
}

function start(options: OpenTelemetryObserverOptions = {}) {
  const observers = [new OpenTelemetryObserver({ meterProvider: provider, ...options })];
  return startApp('express', {
    imports: [RateLimitModule.forRoot({ clock: new ManualClock(), policies: POLICIES, observers })],
    controllers: [Cats],
  });
}

const points = (metric: MetricData | undefined) =>
  metric?.dataPoints.map(({ attributes, value }) => [attributes, value]);

it('counts what Prometheus is told too', async () => {
  const { call } = await start();
  expect(await statuses(() => call('/cats/7'), 3)).toEqual([200, 200, 429]);
  const metrics = await collected();
  const labels = { policy: 'cats', algorithm: 'fixed-window', served_by: 'memory' };
  expect(points(metrics.get('distlimit.decisions'))).toEqual([
    [{ ...labels, outcome: 'allowed' }, 2],
    [{ ...labels, outcome: 'denied' }, 1],
  ]);
  expect(points(metrics.get('distlimit.requests'))).toEqual([[{ policy: 'cats' }, 3]]);
  expect(points(metrics.get('distlimit.denied'))).toEqual([[{ policy: 'cats' }, 1]]);
  expect(points(metrics.get('distlimit.near_limit'))).toEqual([[{ policy: 'cats' }, 1]]);
  expect(points(metrics.get('distlimit.keys_held'))).toEqual([[{}, 1]]);
  expect(points(metrics.get('distlimit.policy_limit'))).toEqual([[{ policy: 'cats' }, 2]]);
  const [[attributes, histogram]] = points(metrics.get('distlimit.evaluation_duration')) as [
    [object, unknown],
  ];
  expect(attributes).toEqual({ served_by: 'memory' });
  expect(histogram).toMatchObject({
    count: 3,
    buckets: { boundaries: expect.arrayContaining([1e-6, 1e-1]) },
  });
});

it('has an instrument for every metric, with its unit and what it means', async () => {
  const made: Record<string, unknown> = {};
  const note = (name: string, options: unknown) => {
    made[name] = options;
    return { addCallback() {}, removeCallback() {}, record() {} };
  };
  const meter = {
    createHistogram: note,
    createObservableGauge: note,
    createObservableCounter: note,
  } as never;
  const observer = new OpenTelemetryObserver({ meter });
  observer.close();
  expect(Object.keys(made).toSorted()).toEqual(METRIC_NAMES.map(instrumentName).toSorted());
  for (const options of Object.values(made)) {
    expect(options).toMatchObject({ description: expect.any(String), unit: expect.any(String) });
  }
});

it('tells routes apart by their template', async () => {
  const { call } = await start({ routeLabel: true });
  for (const id of ['1', '2']) await call(`/cats/${id}`);
  const decisions = (await collected()).get('distlimit.decisions');
  expect(points(decisions)).toEqual([[expect.objectContaining({ route: '/cats/:id' }), 2]]);
});

it('is asked no more once it is closed', async () => {
  const observer = new OpenTelemetryObserver({ meterProvider: provider });
  const limiter = limiterBuilder().observer(observer).build();
  await limiter.consume();
  expect(points((await collected()).get('distlimit.requests'))).toEqual([[{ policy: 'default' }, 1]]);
  observer.close();
  await limiter.consume();
  // The SDK goes on to tell what it was told last.
  expect(points((await collected()).get('distlimit.requests'))).toEqual([[{ policy: 'default' }, 1]]);
  await limiter.close();
});

describe('the active span', () => {
  const spans = new InMemorySpanExporter();
  const tracing = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });

  beforeAll(() => context.setGlobalContextManager(new AsyncLocalContext()));
  beforeEach(() => spans.reset());
  afterAll(async () => {
    context.disable();
    await tracing.shutdown();
  });

  async function eventsOf(options: OpenTelemetryObserverOptions, mode: 'enforce' | 'shadow' = 'enforce') {
    const limiter = limiterBuilder()
      .name('orders')
      .limit(1)
      .window('1m')
      .algorithm('fixed-window')
      .clock(new ManualClock())
      .observer(new OpenTelemetryObserver({ meterProvider: provider, ...options }))
      .build();
    await limiter.update({ mode });
    const span = tracing.getTracer('test').startSpan('order');
    await context.with(trace.setSpan(context.active(), span), async () => {
      await limiter.consume('ip:203.0.113.7');
      await limiter.consume('ip:203.0.113.7');
      await limiter.consume('ip:203.0.113.7', { cost: 2 });
    });
    span.end();
    await limiter.close();
    return spans.getFinishedSpans()[0]!.events.map(({ name, attributes }) => ({ name, ...attributes }));
  }

  it('gets an event for each denial, without the subject', async () => {
    const events = await eventsOf({});
    expect(events).toMatchObject([
      {
        name: 'rate_limit.denied',
        'rate_limit.policy': 'orders',
        'rate_limit.algorithm': 'fixed-window',
        'rate_limit.served_by': 'memory',
        'rate_limit.limit': 1,
        'rate_limit.remaining': 0,
        'rate_limit.cost': 1,
        'rate_limit.retry_after_ms': expect.any(Number),
      },
      { name: 'rate_limit.denied', 'rate_limit.cost': 2 },
    ]);
    expect(events[1]).not.toHaveProperty(['rate_limit.retry_after_ms']);
    expect(JSON.stringify(events)).not.toContain('203.0.113.7');
  });

  it('gets the subject where that is asked for', async () => {
    const [first] = await eventsOf({ subjects: true });
    expect(first).toMatchObject({ 'rate_limit.subject': 'ip:203.0.113.7' });
  });

  it('gets another event in shadow mode', async () => {
    expect((await eventsOf({}, 'shadow')).map(({ name }) => name)).toEqual([
      'rate_limit.shadow_denied',
      'rate_limit.shadow_denied',
    ]);
  });

  it('gets none where that is not wanted', async () => {
    expect(await eventsOf({ spanEvents: false })).toEqual([]);
  });
});
