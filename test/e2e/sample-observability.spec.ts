import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { RateLimiterService } from 'nestjs-distlimit';
import { register } from 'prom-client';
import { AppModule } from '../../sample/06-observability/src/app.module.js';
import { redisForSample, type RedisForSample } from '../../sample/06-observability/src/redis.js';
import { closeApps, startApp, statuses, type RunningApp } from '../support/http-app.js';
import { startRedis, until } from '../support/redis-servers.js';

jest.setTimeout(30_000);

describe('sample 06-observability', () => {
  const redisUrl = process.env.REDIS_URL;
  let redis: RedisForSample;
  let sample: RunningApp;
  let lines: string[];

  const start = async () => {
    redis = await redisForSample();
    sample = await startApp('express', { imports: [AppModule.with(redis)] });
  };
  const order = (customer: string) =>
    sample.call('/shop/orders', { method: 'POST', headers: { 'x-customer': customer } });

  beforeEach(() => {
    delete process.env.REDIS_URL;
    lines = [];
    for (const level of ['log', 'warn'] as const) {
      jest.spyOn(Logger.prototype, level).mockImplementation((text: unknown) => {
        if (String(text).startsWith('RL_')) lines.push(`${level} ${String(text)}`);
      });
    }
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await closeApps();
    await redis.kill();
    register.clear();
    if (redisUrl !== undefined) process.env.REDIS_URL = redisUrl;
  });

  it('shows in metrics, health and log what an outage is like', async () => {
    await start();
    expect(redis).toMatchObject({
      isOwn: true,
      where: expect.stringContaining('a Redis that was started for this'),
    });
    // Five in five seconds: a window may end among these calls, not two.
    expect(await statuses(() => order('ann'), 11)).toContain(429);
    expect((await sample.call('/health')).body).toContain('"breaker":"closed"');
    expect((await sample.call('/drill/outage', { method: 'POST' })).status).toBe(204);
    const limiter = sample.app.get(RateLimiterService);
    await until(() => limiter.status().breaker !== 'closed');
    expect((await order('bob')).status).toBe(202);
    expect((await sample.call('/health')).body).toContain('"degraded":true');
    expect((await sample.call('/metrics')).body).toMatch(
      /^distlimit_fallback_decisions_total\{policy="order"\} [1-9]/m,
    );
    expect((await sample.call('/drill/recovery', { method: 'POST' })).status).toBe(204);
    await until(() => limiter.status().breaker === 'closed');
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'warn RL_BREAKER_OPEN',
      'log RL_BREAKER_RECOVERING',
      'log RL_BREAKER_CLOSED',
    ]);
    expect(lines[2]).toMatch(
      /after \d+\.\d s: Redis was charged with \d+ of what was let through, and \d+ was dropped$/,
    );
  });

  it('keeps its hands off a Redis that it was given', async () => {
    const server = await startRedis();
    try {
      process.env.REDIS_URL = server.url;
      await start();
      expect(redis).toMatchObject({ isOwn: false, url: server.url });
      expect((await order('ann')).status).toBe(202);
      expect((await sample.call('/drill/outage', { method: 'POST' })).status).toBe(409);
      await closeApps();
    } finally {
      await server.stop();
    }
  });

  it('counts in memory where there is no Redis to be had', async () => {
    redis = await redisForSample('no-such-redis-server');
    expect(redis).toMatchObject({
      isOwn: false,
      url: undefined,
      where: expect.stringContaining('in memory'),
    });
    sample = await startApp('express', { imports: [AppModule.with(redis)] });
    // Five in five seconds: a window may end among these calls, not two.
    expect(await statuses(() => order('ann'), 11)).toContain(429);
    expect((await sample.call('/health')).body).toContain('"driver":"memory"');
  });
});
