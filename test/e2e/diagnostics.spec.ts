import { Controller, Get, Logger, UseGuards, UseInterceptors, type INestApplication } from '@nestjs/common';
import { jest } from '@jest/globals';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

@Controller()
class Cats {
  @Get('by-ip')
  @RateLimit('by-ip')
  byIp() {
    return 1;
  }
  @Get('by-user')
  @RateLimit('by-user')
  byUser() {
    return 1;
  }
}

const POLICIES = { 'by-ip': { limit: 9, ...FIXED }, 'by-user': { limit: 9, ...FIXED, key: 'user' } } as const;

let warnings: string[];

beforeEach(() => {
  warnings = [];
  jest
    .spyOn(Logger.prototype, 'warn')
    .mockImplementation((message: unknown) => void warnings.push(String(message)));
});

afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
});

describe.each(ADAPTERS)('on %s', (adapter) => {
  const start = (options: RateLimitModuleOptions, prepare?: (app: INestApplication) => void) =>
    startApp(
      adapter,
      {
        imports: [RateLimitModule.forRoot({ clock: new ManualClock(), policies: POLICIES, ...options })],
        controllers: [Cats],
      },
      prepare,
    );

  it('says nothing where nothing is wrong', async () => {
    const { call } = await start({});
    await call('/by-ip');
    expect(warnings).toEqual([]);
  });

  it('tells once that forwarded headers arrive and nobody is trusted', async () => {
    const { call } = await start({});
    for (let i = 0; i < 3; i++) await call('/by-ip', { headers: { 'x-forwarded-for': `1.2.3.${i}` } });
    expect(warnings).toEqual([expect.stringMatching(/^RL_FORWARDED_UNTRUSTED: /)]);
  });

  it('tells once that a key part gave nothing', async () => {
    const { call } = await start({});
    await call('/by-user');
    await call('/by-user');
    expect(warnings).toEqual([
      "RL_KEY_UNDEFINED: the key part 'user' of policy 'by-user' gave nothing for a call, which counts for its " +
        "client's address instead",
    ]);
  });

  it('tells which handlers have limits that nobody checks', async () => {
    await start({ registerGuard: false });
    expect(warnings).toEqual([
      'RL_GUARD_NOT_BOUND: no RateLimitGuard is bound to Cats.byIp, Cats.byUser: their limits are not checked',
      'RL_INTERCEPTOR_REQUIRED: no RateLimitInterceptor is bound to Cats.byUser: policies decided after the guards are not checked',
    ]);
  });
});

it('warns where the adapter trusts everyone, on Express', async () => {
  const { call } = await startApp(
    'express',
    {
      imports: [
        RateLimitModule.forRoot({ policies: POLICIES, trustedProxies: 'adapter', clock: new ManualClock() }),
      ],
      controllers: [Cats],
    },
    (app) =>
      (app.getHttpAdapter().getInstance() as { set(k: string, v: unknown): void }).set('trust proxy', true),
  );
  expect(warnings).toEqual([expect.stringMatching(/^RL_ADAPTER_TRUSTS_EVERYONE: /)]);
  const { headers } = await call('/by-ip', { headers: { 'x-forwarded-for': '203.0.113.7' } });
  expect(headers.get('ratelimit')).toContain('r=8');
});

it.each([
  [true, 1],
  ['loopback', 0],
])('warns where the adapter trusts everyone, on Fastify with trustProxy %p', async (trustProxy, times) => {
  const { app, call } = await startApp(new FastifyAdapter({ trustProxy }), {
    imports: [
      RateLimitModule.forRoot({ policies: POLICIES, trustedProxies: 'adapter', clock: new ManualClock() }),
    ],
    controllers: [Cats],
  });
  expect(warnings.filter((text) => text.startsWith('RL_ADAPTER_TRUSTS_EVERYONE'))).toHaveLength(times);
  await call('/by-ip', { headers: { 'x-forwarded-for': '203.0.113.7' } });
  expect((await app.get(RateLimiterService).peek('by-ip', 'ip:203.0.113.7')).remaining).toBe(8);
});

it('asks the module’s skip of calls that only the interceptor sees', async () => {
  @Controller()
  @UseInterceptors(RateLimitInterceptor)
  class Intercepted {
    @Get()
    @RateLimit('by-user')
    list() {
      return 1;
    }
  }
  const { call } = await startApp('express', {
    imports: [
      RateLimitModule.forRoot({
        registerGuard: false,
        policies: { 'by-user': { ...POLICIES['by-user'], limit: 1 } },
        skip: ({ header }) => header('x-internal') === 'yes',
      }),
    ],
    controllers: [Intercepted],
  });
  const inside = { headers: { 'x-internal': 'yes' } };
  for (let i = 0; i < 3; i++) expect((await call('/', inside)).status).toBe(200);
  expect([(await call('/')).status, (await call('/')).status]).toEqual([200, 429]);
});

describe('a change that needs the interceptor', () => {
  @Controller()
  @UseGuards(RateLimitGuard)
  class Plain {
    @Get()
    @RateLimit('by-ip')
    list() {
      return 1;
    }
  }

  it('is refused where no interceptor was bound at start-up', async () => {
    const { app } = await startApp('express', {
      imports: [RateLimitModule.forRoot({ policies: { 'by-ip': POLICIES['by-ip'] } })],
      controllers: [Plain],
    });
    const service = app.get(RateLimiterService);
    await expect(service.updatePolicy('by-ip', { key: 'user' })).rejects.toMatchObject({
      code: 'RL_INTERCEPTOR_REQUIRED',
    });
    await expect(service.updatePolicy('by-ip', { key: ['ip', 'route'] })).resolves.toMatchObject({
      limit: 9,
    });
    await expect(service.updatePolicy('by-ip', { limit: 3 }, { scope: 'fleet' })).rejects.toMatchObject({
      code: 'RL_NO_FLEET_SOURCE',
    });
  });

  it('is refused for handlers without one, where guards are bound by hand', async () => {
    @Controller()
    @UseInterceptors(RateLimitInterceptor)
    class Intercepted extends Plain {}
    const start = async (controller: typeof Plain) => {
      const { app } = await startApp('express', {
        imports: [
          RateLimitModule.forRoot({ registerGuard: false, policies: { 'by-ip': POLICIES['by-ip'] } }),
        ],
        controllers: [controller],
      });
      return app.get(RateLimiterService).updatePolicy('by-ip', { key: 'user' });
    };
    await expect(start(Plain)).rejects.toMatchObject({
      code: 'RL_INTERCEPTOR_REQUIRED',
      message: expect.stringContaining('bound to Plain.list') as string,
    });
    await expect(start(Intercepted)).resolves.toMatchObject({ enforceAt: 'interceptor' });
  });
});
