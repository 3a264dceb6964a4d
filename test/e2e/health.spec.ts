import { Controller, Get, Inject, Module } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  MemoryDriver,
  RateLimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { RateLimitHealthIndicator, type RateLimitHealthOptions } from 'nestjs-distlimit/terminus';
import { jest } from '@jest/globals';
import { ADAPTERS, closeApps, startApp, type AdapterName } from '../support/http-app.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';
import { failing, wrapped } from '../support/wrapped-driver.js';

jest.setTimeout(30_000);

declare const NEST_MAJOR: 11 | 12;

const HEALTH_OPTIONS = Symbol('health options');

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly limits: RateLimitHealthIndicator,
    @Inject(HEALTH_OPTIONS) private readonly options: RateLimitHealthOptions,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.limits.isHealthy('limits', this.options)]);
  }
}

const healthOf = (options: RateLimitHealthOptions) => {
  @Module({
    imports: [TerminusModule.forRoot({ logger: false })],
    controllers: [HealthController],
    providers: [RateLimitHealthIndicator, { provide: HEALTH_OPTIONS, useValue: options }],
  })
  class HealthModule {}
  return HealthModule;
};

const POLICIES = { api: { limit: 9, window: '1m' } } as const;

async function start(
  adapter: AdapterName,
  options: RateLimitModuleOptions,
  health: RateLimitHealthOptions = {},
) {
  const { app, call } = await startApp(adapter, {
    imports: [healthOf(health), RateLimitModule.forRoot({ policies: POLICIES, ...options })],
  });
  return {
    limiter: app.get(RateLimiterService),
    async check() {
      const { status, body } = await call('/health');
      const { status: overall, details } = JSON.parse(body) as {
        status: string;
        details: { limits: Record<string, unknown> };
      };
      return { status, overall, ...details.limits };
    },
  };
}

/** Terminus knows `degraded` from 12 on. */
const DEGRADED = NEST_MAJOR >= 12 ? 'degraded' : 'up';
const OVERALL = NEST_MAJOR >= 12 ? 'degraded' : 'ok';

describe.each(ADAPTERS)('the health indicator on %s', (adapter) => {
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(closeApps);
  afterAll(() => server.stop());

  it('is up in memory, and charges nobody', async () => {
    const { check, limiter } = await start(adapter, {});
    for (let i = 0; i < 20; i++) {
      expect(await check()).toEqual({
        ...{ status: 'up', overall: 'ok', driver: 'memory', breaker: null, fleetSize: null },
        ...{ degraded: false, lastError: null },
      });
    }
    expect(limiter.status().keys).toBe(0);
  });

  it('is degraded while Redis is away, and up again when it is back', async () => {
    const hybrid = { coolOffMs: 100, heartbeatMs: 50 };
    const { check, limiter } = await start(adapter, { redis: server.url, prefix: 'health', hybrid });
    expect(await check()).toMatchObject({ status: 'up', overall: 'ok', breaker: 'closed', fleetSize: 1 });
    await server.kill();
    await until(() => limiter.status().breaker !== 'closed');
    expect(await check()).toMatchObject({
      ...{ status: DEGRADED, overall: OVERALL, driver: 'hybrid', degraded: true },
      lastError: expect.any(String),
    });
    await server.restart();
    await until(async () => (await check()).overall === 'ok' && limiter.status().breaker === 'closed');
    expect(await check()).toMatchObject({ status: 'up', degraded: false, lastError: null });
  });

  it.each(['up', 'down'] as const)('is %s while Redis is away, if it is told to', async (degradedIs) => {
    const away = { redis: 'redis://127.0.0.1:1', hybrid: { expectedInstances: 1 } };
    const { check } = await start(adapter, away, { degradedIs });
    expect(await check()).toMatchObject({
      ...{ status: degradedIs, overall: degradedIs === 'up' ? 'ok' : 'error' },
      ...{ degraded: true, lastError: expect.stringContaining('ECONNREFUSED') },
    });
  });

  it('is down where no policy goes on without Redis', async () => {
    const policies = { api: { limit: 9, window: '1m', onUnavailable: 'deny' } } as const;
    const away = { redis: 'redis://127.0.0.1:1', hybrid: { expectedInstances: 1 }, policies };
    const { check } = await start(adapter, away);
    expect(await check()).toMatchObject({
      ...{ status: 'down', overall: 'error', degraded: false },
      message: 'Redis is away, and no policy goes on without it',
    });
  });

  it('is down while the Redis driver has no Redis, and up again without any other call', async () => {
    const { check } = await start(adapter, { driver: 'redis', redis: server.url, prefix: 'health' });
    expect(await check()).toMatchObject({ status: 'up', driver: 'redis', breaker: null });
    await server.kill();
    await until(async () => (await check()).overall === 'error');
    expect(await check()).toMatchObject({
      status: 'down',
      message: expect.stringMatching(/^RL_DRIVER_UNAVAILABLE: the driver 'redis' could not peek: ./),
    });
    await server.restart();
    await until(async () => (await check()).overall === 'ok');
    expect(await check()).toMatchObject({ status: 'up', lastError: null });
  });

  it('is down where a driver fails without end, or does not answer, and shows no password', async () => {
    const memory = new MemoryDriver();
    const broken = wrapped(memory, failing(new Error('redis://:s3cret@cache is away'), 'peek'));
    const silent = wrapped(memory, { peek: () => new Promise(() => {}) });
    const failingApp = await start(adapter, { driver: broken });
    expect(await failingApp.check()).toMatchObject({
      ...{ status: 'down', overall: 'error' },
      message: expect.not.stringContaining('s3cret'),
    });
    const silentApp = await start(adapter, { driver: silent }, { timeoutMs: 50 });
    expect(await silentApp.check()).toMatchObject({
      ...{ status: 'down', message: 'the driver did not answer within 50 ms' },
    });
  });

  it('asks no resolver, which need not know of anybody who checks health', async () => {
    const resolver = {
      resolve: () => {
        throw new Error('unknown tenant');
      },
    };
    const { check } = await start(adapter, { resolver });
    expect(await check()).toMatchObject({ status: 'up', driver: 'memory' });
  });

  it('is up where there are no policies to decide', async () => {
    const { check } = await start(adapter, { policies: {} });
    expect(await check()).toMatchObject({ status: 'up', driver: 'memory' });
  });
});
