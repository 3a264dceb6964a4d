import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { RateLimiterService } from 'nestjs-distlimit';
import { METRIC_NAMES, METRICS } from '../../lib/metrics/metrics.js';
import { AppModule } from '../../sample/06-observability/src/app.module.js';
import { sendLoad } from '../../sample/06-observability/src/load.js';
import { redisForSample, type RedisForSample } from '../../sample/06-observability/src/redis.js';
import { dashboardQueries, withoutVariables } from '../support/dashboard.js';
import { closeApps, startApp, type RunningApp } from '../support/http-app.js';
import { PrometheusServer } from '../support/prometheus-server.js';
import { until } from '../support/redis-servers.js';

jest.setTimeout(120_000);

const seconds = () => Date.now() / 1000;
const RATE = '5s';

let redis: RedisForSample;
let sample: RunningApp;
let prometheus: PrometheusServer;
const load = new AbortController();
const startedAt = seconds();
/** When each part of the story was over. */
const after: Record<'allow' | 'outage' | 'recovery', number> = { allow: 0, outage: 0, recovery: 0 };

const breaker = () => sample.app.get(RateLimiterService).status().breaker;
const post = (path: string, body?: object) =>
  sample.call(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

/** Waits until Prometheus has heard what is true now. */
async function heard(expr: string, expected: (value: number) => boolean): Promise<void> {
  await until(async () => {
    const value = await prometheus.now(expr);
    return value !== undefined && expected(value);
  });
}

beforeAll(async () => {
  const given = process.env.REDIS_URL;
  delete process.env.REDIS_URL;
  redis = await redisForSample();
  if (given !== undefined) process.env.REDIS_URL = given;
  sample = await startApp('express', { imports: [AppModule.with(redis)] });
  const { port } = sample.app.getHttpServer().address() as { port: number };
  prometheus = await PrometheusServer.start(`127.0.0.1:${port}`);
  void sendLoad(`http://127.0.0.1:${port}`, load.signal);
});

afterAll(async () => {
  load.abort();
  await closeApps();
  await prometheus.stop();
  await redis.kill();
});

it('counts in a Redis of its own', () => {
  expect(redis).toMatchObject({ isOwn: true, url: expect.stringContaining('redis://') });
});

it('shows what is allowed, denied, near its limit, and would be denied', async () => {
  await heard('distlimit_denied_total{policy="order"}', (denied) => denied > 5);
  await heard('distlimit_deny_cache_hits_total{policy="browse"}', (hits) => hits > 0);
  await heard('distlimit_near_limit_total{policy="order"}', (near) => near > 5);
  await heard(
    'distlimit_decisions_total{policy="tighter-order",outcome="shadow-denied"}',
    (count) => count > 5,
  );
  expect(await prometheus.now('distlimit_denied_total{policy="tighter-order"}')).toBe(0);
  expect(await prometheus.now('sum(distlimit_decisions_total) - sum(distlimit_requests_total)')).toBe(0);
  expect(await prometheus.now('sum(distlimit_fallback_decisions_total)')).toBe(0);
  expect(await prometheus.now('distlimit_breaker_state{state="closed"}')).toBe(1);
  expect(await prometheus.now('sum(distlimit_breaker_state)')).toBe(1);
  expect(await prometheus.now('distlimit_fleet_size')).toBe(1);
  expect(await prometheus.now('distlimit_keys_held')).toBeGreaterThan(10);
  expect(await prometheus.now('sum(distlimit_driver_errors_total)')).toBe(0);
  expect(
    await prometheus.now('distlimit_decisions_total{policy="browse",served_by="redis"} > 0'),
  ).toBeGreaterThan(0);
  const routes = await prometheus.now('count(count by (route) (distlimit_decisions_total))');
  expect(routes).toBe(2);
});

it('shows decisions that took as long as decisions in Redis take', async () => {
  const median =
    'histogram_quantile(0.5, sum by (le) (distlimit_evaluation_duration_seconds_bucket{served_by="redis"}))';
  const measured = (await prometheus.now(median))!;
  expect(measured).toBeGreaterThan(20e-6);
  expect(measured).toBeLessThan(50e-3);
  const repeated =
    'histogram_quantile(0.5, sum by (le) (distlimit_evaluation_duration_seconds_bucket{served_by="deny-cache"}))';
  expect(await prometheus.now(repeated)).toBeLessThan(measured);
});

it('shows a policy that changes', async () => {
  expect(await prometheus.now('distlimit_policy_limit{policy="browse"}')).toBe(40);
  expect((await post('/drill/limit', { limit: 30 })).status).toBe(201);
  await heard('distlimit_policy_limit{policy="browse"}', (limit) => limit === 30);
  expect(await prometheus.now('distlimit_policy_version{policy="browse"}')).toBe(2);
  expect(await prometheus.now('distlimit_policy_version{policy="order"}')).toBe(1);
});

it('shows a counter that is broken', async () => {
  const client = new Redis(redis.url!);
  try {
    const keys = await client.keys('sample-06*browse*');
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) await client.set(key, 'not a counter');
    await heard('distlimit_driver_errors_total{driver="hybrid"}', (errors) => errors > 0);
    // The calls that a broken counter is part of are decided without Redis as long as it is there.
    await client.del(keys);
  } finally {
    client.disconnect();
  }
  after.allow = seconds();
});

it('shows an outage: the breaker, the fallback, what makes room, and an alert that waits', async () => {
  expect((await post('/drill/outage')).status).toBe(204);
  await heard('distlimit_breaker_state{state="closed"}', (value) => value === 0);
  await heard('sum(distlimit_fallback_decisions_total{policy="order"})', (count) => count > 50);
  for (let i = 0; i < 700; i++) await sample.call('/shop/x', { headers: { 'x-customer': `passer-by ${i}` } });
  await heard('distlimit_evictions_total', (evicted) => evicted > 100);
  expect(await prometheus.now('distlimit_keys_held')).toBeGreaterThan(400);
  expect(await prometheus.now('distlimit_breaker_transitions_total{from="closed",to="open"}')).toBe(1);
  expect(await prometheus.alerts()).toContainEqual({ state: 'pending', name: 'RateLimitStoreAway' });
  expect(JSON.parse((await sample.call('/health')).body)).toMatchObject({
    status: 'degraded',
    details: { 'rate-limits': { degraded: true, driver: 'hybrid' } },
  });
  // Longer than the window of orders: what was let through in the first of them is not charged any more.
  await sleep(6_000);
  after.outage = seconds();
});

it('shows the way back: what was charged, and what was dropped', async () => {
  expect((await post('/drill/recovery')).status).toBe(204);
  await until(() => breaker() === 'closed');
  await heard('distlimit_breaker_state{state="closed"}', (value) => value === 1);
  await heard('distlimit_reconciled_total', (cost) => cost > 100);
  await heard('distlimit_dropped_total', (cost) => cost > 5);
  expect(await prometheus.now('distlimit_breaker_transitions_total{from="recovering",to="closed"}')).toBe(1);
  expect(await prometheus.now('distlimit_breaker_transitions_total{from="closed",to="open"}')).toBe(1);
  const charged = (await prometheus.now('distlimit_reconciled_total + distlimit_dropped_total'))!;
  const letThrough = 'sum(distlimit_decisions_total{served_by="fallback",outcome="allowed"})';
  // Each allowed fallback decision costs 1, and is either charged or dropped.
  expect(charged).toBeLessThanOrEqual((await prometheus.now(letThrough))!);
  expect(charged).toBeGreaterThan(0);
  expect(JSON.parse((await sample.call('/health')).body)).toMatchObject({ status: 'ok' });
  await sleep(8_000);
  // What was served without Redis stays so until its window ends: of orders that is over by now.
  const byFallback = 'sum(distlimit_fallback_decisions_total{policy="order"})';
  const fallback = await prometheus.now(byFallback);
  const byRedis = 'sum(distlimit_decisions_total{policy="order",served_by="redis"})';
  const before = (await prometheus.now(byRedis))!;
  await heard(byRedis, (count) => count > before + 20);
  expect(await prometheus.now(byFallback)).toBe(fallback);
  expect(await prometheus.alerts()).not.toContainEqual(
    expect.objectContaining({ name: 'RateLimitStoreAway' }),
  );
  after.recovery = seconds();
});

it('has seen every metric', async () => {
  for (const name of METRIC_NAMES) {
    const series = METRICS[name].kind === 'histogram' ? `${name}_count` : name;
    expect([name, await prometheus.now(`distlimit_${series}`)]).toEqual([name, expect.any(Number)]);
  }
});

it.each(dashboardQueries.map(({ title, expr }) => [title, expr]))(
  'answers the dashboard: %s',
  async (_title, expr) => {
    const series = await prometheus.range(withoutVariables(expr, RATE), startedAt, after.recovery);
    const values = series.flatMap(({ values }) => values.map(([, value]) => value)).filter(Number.isFinite);
    expect(values.length).toBeGreaterThan(5);
    // What a panel shows has been more than nothing some time.
    expect(Math.max(...values)).toBeGreaterThan(0);
    expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
  },
);

it('shows on the dashboard when what happened', async () => {
  const most = async (expr: string, from: number, to: number) => {
    const series = await prometheus.range(expr, from, to);
    return Math.max(0, ...series.flatMap(({ values }) => values.map(([, value]) => value)));
  };
  // Who browsed in the outage stays with the local share until the minute is over; orders have windows of 5 seconds.
  const fallback = `sum(rate(distlimit_fallback_decisions_total{policy="order"}[${RATE}]))`;
  expect(await most(fallback, after.outage - 3, after.outage)).toBeGreaterThan(5);
  expect(await most(fallback, after.recovery - 1, after.recovery)).toBeLessThan(1);
  const inRedis = `sum(rate(distlimit_decisions_total{served_by="redis"}[${RATE}]))`;
  expect(await most(inRedis, after.outage - 1, after.outage)).toBe(0);
  expect(await most(inRedis, after.recovery - 1, after.recovery)).toBeGreaterThan(5);
});
