import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { Controller, Get, Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import {
  CommonLimit,
  InjectLimiter,
  limiterBuilder,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  type Limiter,
  type RateLimitModuleOptions,
  type RateLimitOptionsFactory,
} from 'nestjs-distlimit';
import { AppModule } from '../../sample/01-quick-start/src/app.module.js';
import { trySome } from '../../sample/01-quick-start/src/try-some.js';
import { closeApps, startApp, statuses } from '../support/http-app.js';
import { startCluster, startRedis, until, type RedisServer } from '../support/redis-servers.js';

/** Set by the jest project that runs this file. */
declare const NEST_MAJOR: 11 | 12;

@Controller()
class CatsController {
  @Get('cats')
  @RateLimit('api')
  cats(): string {
    return 'Tom';
  }
}

let server: RedisServer;
let prefixes = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(closeApps);
afterAll(() => server.stop());

function shared(options: Partial<RateLimitModuleOptions> = {}): RateLimitModuleOptions {
  return {
    redis: server.url,
    driver: 'redis',
    prefix: `e2e-${prefixes}`,
    policies: { api: { limit: 5, window: '30d' } },
    ...options,
  };
}

const start = (adapter: 'express' | 'fastify', options: RateLimitModuleOptions) =>
  startApp(adapter, { imports: [RateLimitModule.forRoot(options)], controllers: [CatsController] });

const clients = async () => Number(/connected_clients:(\d+)/.exec(await server.client.info('clients'))![1]);

it.each(['redis', 'hybrid'] as const)(
  'leaves no connection of the %s driver open where a start fails',
  async (driver) => {
    @Injectable()
    class Jobs {
      @CommonLimit('unknown')
      run() {}
    }
    @Injectable()
    class Mail {
      constructor(@InjectLimiter('unknown too') readonly limiter: Limiter) {}
    }
    @Controller()
    class Unknown {
      @Get()
      @RateLimit('unknown')
      get() {}
    }
    const before = await clients();
    for (const metadata of [{ providers: [Jobs] }, { providers: [Mail] }, { controllers: [Unknown] }]) {
      const start = async () => {
        const testing = await Test.createTestingModule({
          imports: [RateLimitModule.forRoot(shared({ driver }))],
          ...metadata,
        })
          .setLogger(false as never)
          .compile();
        await testing.init();
      };
      await expect(start()).rejects.toMatchObject({ code: 'RL_UNKNOWN_POLICY' });
    }
    await until(async () => (await clients()) === before);
  },
);

it('runs with the ioredis of this project', () => {
  const manifest = new URL('../package.json', import.meta.resolve('ioredis'));
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  expect(Number.parseInt(version, 10)).toBe(NEST_MAJOR === 12 ? 6 : 5);
});

it('shares a limit between applications, and closes its connections with them', async () => {
  prefixes++;
  await until(async () => (await clients()) === 1);
  const apps = [await start('express', shared()), await start('fastify', shared())];
  expect(await statuses(() => apps[0]!.call('/cats'), 3)).toEqual([200, 200, 200]);
  expect(await statuses(() => apps[1]!.call('/cats'), 4)).toEqual([200, 200, 429, 429]);
  expect(await statuses(() => apps[0]!.call('/cats'), 1)).toEqual([429]);
  await closeApps();
  await until(async () => (await clients()) === 1);
});

it("takes the application's own client, and leaves it open", async () => {
  prefixes++;
  const redis = new Redis(server.url);
  try {
    const { call, app } = await start('express', shared({ redis }));
    expect(await statuses(() => call('/cats'), 6)).toEqual([200, 200, 200, 200, 200, 429]);
    const service = app.get(RateLimiterService);
    expect(service.status()).toMatchObject({ driver: 'redis', breaker: null, lastError: null });
    await closeApps();
    expect(await redis.ping()).toBe('PONG');
  } finally {
    redis.disconnect();
  }
});

it('takes its options from a factory', async () => {
  prefixes++;
  class Options implements RateLimitOptionsFactory {
    createRateLimitOptions() {
      return shared({ policies: { api: { limit: 1, window: '30d' } } });
    }
  }
  const { call } = await startApp('fastify', {
    imports: [RateLimitModule.forRootAsync({ useClass: Options })],
    controllers: [CatsController],
  });
  expect(await statuses(() => call('/cats'), 2)).toEqual([200, 429]);
});

it('is where the quick start sample counts with REDIS_URL', async () => {
  const { REDIS_URL } = process.env;
  process.env.REDIS_URL = server.url;
  try {
    const apps = [
      await startApp('express', { imports: [AppModule] }),
      await startApp('express', { imports: [AppModule] }),
    ];
    expect(await statuses(() => apps[0]!.call('/cats/search'), 2)).toEqual([200, 200]);
    expect(await statuses(() => apps[1]!.call('/cats/search'), 2)).toEqual([200, 429]);
    const status = apps[0]!.app.get(RateLimiterService).status();
    expect(trySome(3000, status)).toContain('Counters are in Redis');
    expect(trySome(3000, { ...status, breaker: 'open' })).toContain('does not answer');
  } finally {
    if (REDIS_URL === undefined) delete process.env.REDIS_URL;
    else process.env.REDIS_URL = REDIS_URL;
  }
});

it('starts without Redis, answers 503 or passes as the policy says, and recovers', async () => {
  prefixes++;
  await server.kill();
  const policies = { api: { limit: 5, window: '30d', onUnavailable: 'deny' } } as const;
  const { call } = await start('express', shared({ policies }));
  expect(await statuses(() => call('/cats'), 2)).toEqual([503, 503]);
  await server.restart();
  await until(async () => (await call('/cats')).status === 200);
});

it('does not start with a source that is none, nor opens a connection for a policy that is wrong', async () => {
  const starting = (options: object) =>
    Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] }).compile();
  await expect(starting({ driver: 'redis' })).rejects.toThrow(/^RL_INVALID_OPTION: redis/);
  await expect(starting({ driver: 'redis', redis: 'localhost' })).rejects.toThrow(
    /^RL_INVALID_OPTION: redis/,
  );
  await expect(starting({ driver: 'hybrid' })).rejects.toThrow(/^RL_INVALID_OPTION: redis/);
  const wrong = { redis: server.url, driver: 'redis', policies: { api: { limit: -1, window: 1 } } };
  await expect(starting(wrong)).rejects.toThrow(/^RL_INVALID_LIMIT/);
  await until(async () => (await clients()) === 1);
});

it('works on a cluster, with its own client and with a given one', async () => {
  const cluster = await startCluster();
  const given = new Cluster(cluster.startupNodes);
  try {
    for (const redis of [{ nodes: cluster.startupNodes }, given]) {
      const limiter = limiterBuilder(redis)
        .driver('redis')
        .prefix(`e2e-${++prefixes}`)
        .limit(1)
        .window('30d')
        .build();
      try {
        for (const node of cluster.nodes.slice(0, 3)) await node.client.script('FLUSH');
        const subjects = Array.from({ length: 60 }, (_, i) => `subject ${i}`);
        for (const allowed of [true, false]) {
          const answers = await Promise.all(subjects.map((subject) => limiter.tryAcquire(subject)));
          expect(answers).toEqual(subjects.map(() => allowed));
        }
      } finally {
        await limiter.close();
      }
    }
    expect(await given.get('nothing')).toBeNull();
  } finally {
    given.disconnect();
    await cluster.stop();
  }
}, 60_000);
