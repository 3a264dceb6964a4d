import { Controller, Get, Injectable, Module, Param } from '@nestjs/common';
import { InjectMetric, PrometheusModule } from '@willsoto/nestjs-prometheus';
import {
  limiterBuilder,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { PrometheusObserver, RateLimitPrometheusModule } from 'nestjs-distlimit/prometheus';
import { ManualClock } from 'nestjs-distlimit/testing';
import { Counter, Gauge, register, Registry } from 'prom-client';
import { ADAPTERS, closeApps, startApp, statuses } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const OPTIONS = {
  clock: new ManualClock(),
  policies: {
    cats: { limit: 5, ...FIXED },
    trial: { limit: 1, ...FIXED, mode: 'shadow' },
    unused: { limit: 7, window: '1m' },
  },
} satisfies RateLimitModuleOptions;

@Controller('cats')
class Cats {
  @Get(':id')
  @RateLimit('cats', 'trial')
  one(@Param('id') id: string) {
    return id;
  }
}

afterEach(async () => {
  await closeApps();
  register.clear();
});

/** The samples of one metric, as Prometheus would read them. */
function samples(text: string, name: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return Object.fromEntries(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(name.length, space), Number(line.slice(space + 1))];
    }),
  );
}

describe.each(ADAPTERS)('RateLimitPrometheusModule on %s', (adapter) => {
  it.each<[string, () => NonNullable<Parameters<typeof startApp>[1]['imports']>]>([
    [
      'first',
      () => [
        RateLimitPrometheusModule.forRoot(),
        PrometheusModule.register(),
        RateLimitModule.forRoot(OPTIONS),
      ],
    ],
    [
      'last',
      () => [
        RateLimitModule.forRootAsync({ useFactory: async () => Promise.resolve(OPTIONS) }),
        PrometheusModule.register(),
        RateLimitPrometheusModule.forRoot(),
      ],
    ],
  ])('counts in the registry that PrometheusModule serves, imported %s', async (_order, imports) => {
    const { call } = await startApp(adapter, { imports: imports(), controllers: [Cats] });
    expect(await statuses(() => call('/cats/7'), 7)).toEqual([200, 200, 200, 200, 200, 429, 429]);
    const { status, body } = await call('/metrics');
    expect(status).toBe(200);
    expect(body).toContain('process_cpu_user_seconds_total');
    expect(samples(body, 'distlimit_decisions_total')).toEqual({
      '{policy="cats",algorithm="fixed-window",served_by="memory",outcome="allowed"}': 5,
      '{policy="cats",algorithm="fixed-window",served_by="memory",outcome="denied"}': 2,
      '{policy="trial",algorithm="fixed-window",served_by="memory",outcome="allowed"}': 1,
      '{policy="trial",algorithm="fixed-window",served_by="memory",outcome="shadow-denied"}': 6,
    });
    expect(samples(body, 'distlimit_requests_total')).toEqual({
      '{policy="cats"}': 7,
      '{policy="trial"}': 7,
      '{policy="unused"}': 0,
    });
    expect(samples(body, 'distlimit_denied_total')).toEqual({
      '{policy="cats"}': 2,
      '{policy="trial"}': 0,
      '{policy="unused"}': 0,
    });
    // Of 5, 20 % is 1: none left is less.
    expect(samples(body, 'distlimit_near_limit_total')).toMatchObject({
      '{policy="cats"}': 1,
      '{policy="trial"}': 1,
    });
    expect(samples(body, 'distlimit_policy_limit')).toMatchObject({
      '{policy="cats"}': 5,
      '{policy="unused"}': 7,
    });
    expect(samples(body, 'distlimit_policy_version')).toMatchObject({ '{policy="cats"}': 1 });
    expect(samples(body, 'distlimit_evaluation_duration_seconds_count')).toEqual({
      '{served_by="memory"}': 14,
    });
    expect(samples(body, 'distlimit_keys_held')).toEqual({ '': 2 });
    expect(samples(body, 'distlimit_breaker_state')).toEqual({});
  });

  it('tells routes apart by their template', async () => {
    const { call } = await startApp(adapter, {
      imports: [
        RateLimitModule.forRoot(OPTIONS),
        PrometheusModule.register({ defaultMetrics: { enabled: false } }),
        RateLimitPrometheusModule.forRoot({ routeLabel: true }),
      ],
      controllers: [Cats],
    });
    for (const id of ['1', '2', '3']) await call(`/cats/${id}`);
    const { body } = await call('/metrics');
    expect(samples(body, 'distlimit_decisions_total')).toMatchObject({
      '{policy="cats",algorithm="fixed-window",served_by="memory",outcome="allowed",route="/cats/:id"}': 3,
    });
  });
});

describe('RateLimitPrometheusModule', () => {
  const start = (...imports: NonNullable<Parameters<typeof startApp>[1]['imports']>) =>
    startApp('express', { imports: [RateLimitModule.forRoot(OPTIONS), ...imports], controllers: [Cats] });

  it('takes the prefix of a global PrometheusModule before its own', async () => {
    const { call } = await start(
      PrometheusModule.register({ global: true, customMetricPrefix: 'shop' }),
      RateLimitPrometheusModule.forRoot({ prefix: 'limits_' }),
    );
    await call('/cats/1');
    const { body } = await call('/metrics');
    expect(samples(body, 'shop_limits_requests_total')).toMatchObject({ '{policy="cats"}': 1 });
  });

  it('has metrics that can be injected', async () => {
    @Injectable()
    class Report {
      constructor(@InjectMetric('distlimit_denied_total') readonly denied: Counter) {}
    }
    @Module({ imports: [RateLimitPrometheusModule.forRoot()], providers: [Report] })
    class ReportModule {}
    const { app, call } = await start(ReportModule);
    await statuses(() => call('/cats/7'), 6);
    const { values } = await app.get(Report, { strict: false }).denied.get();
    expect(values).toContainEqual({ labels: { policy: 'cats' }, value: 1 });
  });

  it('counts once where its observer is named in `observers` too', async () => {
    const { call } = await startApp('express', {
      imports: [
        RateLimitModule.forRoot({ ...OPTIONS, observers: [PrometheusObserver] }),
        RateLimitPrometheusModule.forRoot(),
      ],
      controllers: [Cats],
    });
    await call('/cats/1');
    expect(samples(await register.metrics(), 'distlimit_requests_total')['{policy="cats"}']).toBe(1);
  });

  it('goes on in the same metrics where an application ends and another starts in the process', async () => {
    const first = await start(RateLimitPrometheusModule.forRoot());
    await statuses(() => first.call('/cats/7'), 3);
    await closeApps();
    expect(samples(await register.metrics(), 'distlimit_requests_total')['{policy="cats"}']).toBe(3);
    const second = await start(RateLimitPrometheusModule.forRoot());
    await statuses(() => second.call('/cats/7'), 2);
    await second.app.get(RateLimiterService).updatePolicy('cats', { limit: 6 });
    const text = await register.metrics();
    expect(samples(text, 'distlimit_requests_total')['{policy="cats"}']).toBe(5);
    expect(samples(text, 'distlimit_policy_version')['{policy="cats"}']).toBe(2);
    expect(samples(text, 'distlimit_policy_limit')['{policy="cats"}']).toBe(6);
  });

  it('adds up what two applications of a process count', async () => {
    const apps = [
      await start(RateLimitPrometheusModule.forRoot()),
      await start(RateLimitPrometheusModule.forRoot()),
    ];
    for (const { call } of apps) await call('/cats/7');
    for (let i = 0; i < 3; i++) {
      expect(samples(await register.metrics(), 'distlimit_requests_total')['{policy="cats"}']).toBe(2);
    }
  });

  it('keeps to a registry of its own', async () => {
    const registry = new Registry();
    const { call } = await start(RateLimitPrometheusModule.forRoot({ registry }));
    await call('/cats/7');
    expect(samples(await registry.metrics(), 'distlimit_requests_total')['{policy="cats"}']).toBe(1);
    expect(await register.metrics()).not.toContain('distlimit');
  });

  it('refuses a name that a metric of another kind has', async () => {
    const gauge = new Gauge({ name: 'distlimit_denied_total', help: 'mine' });
    await expect(start(RateLimitPrometheusModule.forRoot())).rejects.toThrow(
      'RL_INVALID_OPTION: prometheus.prefix: expected a prefix that makes names of its own: distlimit_denied_total ' +
        'is there already, as a gauge with the labels [] instead of a counter with [policy], received "distlimit_"',
    );
    gauge.set(1);
  });

  it('refuses other buckets than its histogram has already', () => {
    new PrometheusObserver().close();
    expect(() => new PrometheusObserver({ buckets: [0.1, 1] })).toThrow(
      'RL_INVALID_OPTION: prometheus.buckets: expected those that distlimit_evaluation_duration_seconds has in this registry: 0.000001, ',
    );
  });

  it.each([
    [{ prefix: '1st' }, 'RL_INVALID_OPTION: prometheus.prefix: expected the beginning of a metric name'],
    [{ buckets: [2, 1] }, 'RL_INVALID_OPTION: prometheus.buckets: expected ascending numbers'],
    [{ routeLabel: 'yes' }, 'RL_INVALID_OPTION: prometheus.routeLabel: expected true or false'],
    [{ registry: {} }, 'RL_INVALID_OPTION: prometheus.registry'],
    [
      { label: 1 },
      'RL_UNKNOWN_OPTION: prometheus.label: expected one of prefix, routeLabel, buckets, registry',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => RateLimitPrometheusModule.forRoot(options as never)).toThrow(message);
    expect(() => new PrometheusObserver(options as never)).toThrow(message);
  });
});

it('makes no new series of a hundred thousand clients', async () => {
  const registry = new Registry();
  const observer = new PrometheusObserver({ registry, prefix: '', routeLabel: true });
  const limiter = limiterBuilder().limit(1).window('1h').clock(new ManualClock()).observer(observer).build();
  for (let i = 0; i < 50; i++) limiter.consumeSync('first');
  const series = async () => (await registry.metrics()).split('\n').filter((line) => /^[a-z]/.test(line));
  const before = await series();
  for (let i = 0; i < 100_000; i++) limiter.consumeSync(`ip:client-${i}`);
  const after = await series();
  expect(after.map((line) => line.split(' ')[0])).toEqual(before.map((line) => line.split(' ')[0]));
  expect(after.join('\n')).not.toContain('client');
  expect(after).toContain('requests_total{policy="default"} 100050');
  await limiter.close();
});

it('is an observer that can be listed by its class, without the module', async () => {
  const { call } = await startApp('express', {
    imports: [RateLimitModule.forRoot({ ...OPTIONS, observers: [PrometheusObserver] })],
    controllers: [Cats],
  });
  await call('/cats/7');
  expect(samples(await register.metrics(), 'distlimit_requests_total')['{policy="cats"}']).toBe(1);
});

it('lets go of an application that has ended, where it is listed by its class', async () => {
  const start = async () => {
    const { app, call } = await startApp('express', {
      imports: [RateLimitModule.forRoot({ ...OPTIONS, observers: [PrometheusObserver] })],
      controllers: [Cats],
    });
    await call('/cats/7');
    return app;
  };
  const first = await start();
  const keys = async () => samples(await register.metrics(), 'distlimit_keys_held')[''];
  expect(await keys()).toBe(2);
  await first.close();
  const second = await start();
  await second.get(RateLimiterService).consume('cats', 'somebody else');
  // What the first one would say now is nothing at all, and may not hide the second one's.
  expect(await keys()).toBe(3);
});

it('leaves behind what was counted when it is closed, and is asked no more', async () => {
  const observer = new PrometheusObserver();
  const limiter = limiterBuilder().observer(observer).build();
  await limiter.consume();
  observer.close();
  await limiter.consume();
  expect(samples(await register.metrics(), 'distlimit_requests_total')).toEqual({ '{policy="default"}': 1 });
  await limiter.close();
});

it('tells how long decisions took as prom-client would', async () => {
  const registry = new Registry();
  const observer = new PrometheusObserver({ registry, buckets: [0.001, 0.01] });
  const limiter = limiterBuilder().observer(observer).build();
  await limiter.consume();
  const read = async () => {
    const text = await registry.metrics();
    return {
      buckets: samples(text, 'distlimit_evaluation_duration_seconds_bucket'),
      count: samples(text, 'distlimit_evaluation_duration_seconds_count'),
      sum: samples(text, 'distlimit_evaluation_duration_seconds_sum')['{served_by="memory"}']!,
    };
  };
  const base = {
    verdict: { servedBy: 'memory', remaining: 1 },
    policy: limiter.policy,
    quota: limiter.policy,
  };
  const told = { ...base, outcome: 'allowed', storeFailed: false, call: undefined, cost: 1 };
  const before = await read();
  for (const durationMs of [1, 5, 2_000]) observer.decision({ ...told, durationMs } as never);
  const after = await read();
  expect(after.count).toEqual({ '{served_by="memory"}': before.count['{served_by="memory"}']! + 3 });
  const [small = 0, big = 0, all = 0] = Object.values(before.buckets);
  expect(Object.values(after.buckets)).toEqual([small + 1, big + 2, all + 3]);
  expect(after.sum - before.sum).toBeCloseTo(2.006, 9);
  // A registry that is reset begins again.
  registry.resetMetrics();
  observer.decision({ ...told, durationMs: 5 } as never);
  expect((await read()).count).toEqual({ '{served_by="memory"}': 1 });
  await limiter.close();
});
