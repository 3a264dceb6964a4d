import 'reflect-metadata';
import { Controller, Get, type DynamicModule, type Provider } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { Throttle, ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { RateLimiterService, RateLimitModule, type RateLimitModuleOptions } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { DistlimitThrottlerStorage } from 'nestjs-distlimit/throttler';
import { ADAPTERS, closeApps, startApp, statuses, type AdapterName } from '../support/http-app.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';

@Controller()
class CatsController {
  @Get('cats')
  cats(): string {
    return 'Tom';
  }

  @Get('dogs')
  @Throttle({ default: { limit: 1, ttl: 60_000, blockDuration: 120_000 } })
  dogs(): string {
    return 'Rex';
  }

  /** A limit that is another one for each request. */
  @Get('birds')
  @Throttle({
    default: {
      ttl: 60_000,
      limit: (context) =>
        Number(context.switchToHttp().getRequest<{ query: { limit: string } }>().query.limit),
    },
  })
  birds(): string {
    return 'Tweety';
  }
}

const guard: Provider = { provide: APP_GUARD, useClass: ThrottlerGuard };

const THROTTLERS = [{ limit: 3, ttl: 60_000, blockDuration: 0 }];

let server: RedisServer;
let prefixes = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(closeApps);
afterAll(() => server.stop());

function start(adapter: AdapterName, storage: DistlimitThrottlerStorage) {
  const throttler = ThrottlerModule.forRoot({ throttlers: THROTTLERS, storage });
  return startApp(adapter, { imports: [throttler], controllers: [CatsController], providers: [guard] });
}

const shared = () => ({ redis: server.url, prefix: `throttler-${prefixes++}` });

describe.each(ADAPTERS)('an existing throttler on %s', (adapter) => {
  it.each([
    ['memory', () => ({})],
    ['redis', () => ({ ...shared(), driver: 'redis' as const })],
    ['hybrid', () => shared()],
  ])('counts with the %s driver, and keeps its headers', async (_driver, options) => {
    const app = await start(
      adapter,
      new DistlimitThrottlerStorage({ algorithm: 'fixed-window', ...options() }),
    );
    const first = await app.call('/cats');
    expect(first.status).toBe(200);
    expect(first.headers.get('x-ratelimit-limit')).toBe('3');
    expect(first.headers.get('x-ratelimit-remaining')).toBe('2');
    expect(Number(first.headers.get('x-ratelimit-reset'))).toBeLessThanOrEqual(60);
    expect(await statuses(() => app.call('/cats'), 3)).toEqual([200, 200, 429]);
    const denied = await app.call('/cats');
    expect(denied.body).toContain('ThrottlerException: Too Many Requests');
    const retryAfter = Number(denied.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(60);
    // Each handler has a counter of its own, as throttlers have.
    expect((await app.call('/dogs')).status).toBe(200);
  });
});

it("blocks for the throttler's `blockDuration`, and not longer for calls that come meanwhile", async () => {
  const clock = new ManualClock(1_000_000);
  const app = await start('express', new DistlimitThrottlerStorage({ clock }));
  expect(await statuses(() => app.call('/dogs'), 2)).toEqual([200, 429]);
  clock.advance(60_000);
  const blocked = await app.call('/dogs');
  expect([blocked.status, blocked.headers.get('retry-after')]).toEqual([429, '60']);
  clock.advance(59_999);
  expect((await app.call('/dogs')).status).toBe(429);
  clock.advance(1);
  expect((await app.call('/dogs')).status).toBe(200);
});

it('takes the numbers that a throttler may have: fractions, and no limit at all', async () => {
  const storage = new DistlimitThrottlerStorage({ clock: new ManualClock() });
  const hits = async (key: string, ttl: number, limit: number, block: number) => {
    const blocked: boolean[] = [];
    for (let i = 0; i < 4; i++) {
      blocked.push((await storage.increment(key, ttl, limit, block, 'default')).isBlocked);
    }
    return blocked;
  };
  expect(await hits('fraction', 1_000.5, 2.5, 0.5)).toEqual([false, false, true, true]);
  expect(await hits('endless', 1_000, Infinity, 0)).toEqual([false, false, false, false]);
  await expect(hits('nonsense', 1_000, NaN, 0)).rejects.toMatchObject({ code: 'RL_INVALID_LIMIT' });
  await storage.onApplicationShutdown();
});

it('keeps what was used where a request is given another limit', async () => {
  const app = await start('express', new DistlimitThrottlerStorage());
  expect(await statuses(() => app.call('/birds?limit=5'), 2)).toEqual([200, 200]);
  const third = await app.call('/birds?limit=10');
  expect(third.headers.get('x-ratelimit-remaining')).toBe('7');
});

describe('beside a RateLimitModule', () => {
  const started = (options: RateLimitModuleOptions, imports: DynamicModule[] = []) =>
    startApp('express', {
      imports: [
        RateLimitModule.forRoot(options),
        ThrottlerModule.forRootAsync({
          inject: [RateLimiterService],
          useFactory: (limiter: RateLimiterService) => ({
            throttlers: THROTTLERS,
            storage: new DistlimitThrottlerStorage(limiter),
          }),
        }),
        ...imports,
      ],
      controllers: [CatsController],
      providers: [guard],
    });

  it('counts where that does, and opens nothing', async () => {
    const before = await clients();
    const options: RateLimitModuleOptions = { ...shared(), driver: 'redis' };
    const one = await started(options);
    const opened = (await clients()) - before;
    const another = await started(options);
    expect(await clients()).toBe(before + 2 * opened);
    expect(await statuses(() => one.call('/cats'), 2)).toEqual([200, 200]);
    expect(await statuses(() => another.call('/cats'), 2)).toEqual([200, 429]);
    expect(await server.client.keys(`${options.prefix}:*throttler*default*`)).not.toEqual([]);
  });

  it('has its hits seen by the observers', async () => {
    const seen: string[] = [];
    const decision = ({ verdict, outcome }: { verdict: { policy: string }; outcome: string }) =>
      void seen.push(`${verdict.policy} ${outcome}`);
    const app = await started({ observers: [{ decision }] });
    await statuses(() => app.call('/cats'), 4);
    const allowed = 'throttler:default allowed';
    expect(seen).toEqual([allowed, allowed, allowed, 'throttler:default denied']);
  });
});

it('goes on without Redis, and closes what it opened', async () => {
  const own = await startRedis();
  const before = await clients();
  try {
    const storage = new DistlimitThrottlerStorage({ redis: own.url, hybrid: { expectedInstances: 1 } });
    const app = await start('fastify', storage);
    expect((await app.call('/cats')).status).toBe(200);
    await own.kill();
    // What was used stays used.
    expect(await statuses(() => app.call('/cats'), 3)).toEqual([200, 200, 429]);
    const another = new DistlimitThrottlerStorage({ redis: server.url });
    await start('express', another);
    expect(await clients()).toBeGreaterThan(before);
  } finally {
    await closeApps();
    await own.stop();
  }
  await until(async () => (await clients()) === before);
});

describe('refuses at start-up', () => {
  it.each([
    ['an unknown option', { ttl: 5 }, 'RL_UNKNOWN_OPTION'],
    ['an algorithm that holds calls', { algorithm: 'leaky-bucket' }, 'RL_INVALID_OPTION'],
    ['an unknown algorithm', { algorithm: 'magic' }, 'RL_UNKNOWN_ALGORITHM'],
    ['a wrong bound', { memory: { maxKeys: 0 } }, 'RL_INVALID_OPTION'],
  ])('%s', (_what, options, code) => {
    expect(() => new DistlimitThrottlerStorage(options as object)).toThrow(expect.objectContaining({ code }));
  });
});

const clients = async () => Number(/connected_clients:(\d+)/.exec(await server.client.info('clients'))![1]);
