import { jest } from '@jest/globals';
import { Controller, Get, Logger, Scope, UseGuards, UseInterceptors, type Type } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  SkipRateLimit,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { firstValueFrom } from 'rxjs';
import { closeApps, startApp } from '../support/http-app.js';
import { freePort } from '../support/redis-servers.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

@Controller()
class Cats {
  @Get('cats')
  @RateLimit('shared', 'http')
  list() {
    return 'Tom';
  }

  @MessagePattern('cats')
  @RateLimit('shared', 'messages')
  find() {
    return 'Tom';
  }
}

let warn: jest.SpiedFunction<Logger['warn']>;
let closing: (() => unknown)[] = [];

beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
});

afterEach(async () => {
  warn.mockRestore();
  for (const close of closing.splice(0)) close();
  await closeApps();
});

interface Connection {
  readonly inherit: boolean;
  readonly later?: boolean;
}

/** One application with HTTP and a microservice for each of `connections`. */
async function start(controllers: Type[], ...connections: Connection[]) {
  const ports = await Promise.all(connections.map(() => freePort()));
  const { app, call } = await startApp(
    'express',
    {
      imports: [
        RateLimitModule.forRoot({
          clock: new ManualClock(),
          policies: {
            shared: { limit: 3, ...FIXED },
            http: { limit: 2, ...FIXED },
            messages: { limit: 2, ...FIXED, countIf: () => true },
          },
        }),
      ],
      controllers,
    },
    (made) => {
      connections.forEach(({ inherit, later = false }, i) => {
        const options = {
          transport: Transport.TCP,
          options: { host: '127.0.0.1', port: ports[i]! },
        } as const;
        made.connectMicroservice(options, { inheritAppConfig: inherit, deferInitialization: later });
      });
    },
  );
  await app.startAllMicroservices();
  const clients = ports.map((port) => {
    const client = ClientProxyFactory.create({
      transport: Transport.TCP,
      options: { host: '127.0.0.1', port },
    });
    closing.push(() => client.close());
    return (pattern = 'cats') => firstValueFrom(client.send<unknown>(pattern, {}));
  });
  return { call, send: clients[0]!, limits: app.get(RateLimiterService) };
}

const warnings = () =>
  warn.mock.calls.map(([message]) => String(message)).filter((m) => /^RL_GUARD|^RL_INT/.test(m));

describe('an application with HTTP and a connected microservice', () => {
  it('limits both, by policies of their own and by one that they share, and denies in the form of each', async () => {
    const { call, send, limits } = await start([Cats], { inherit: true });
    expect((await call('/cats')).status).toBe(200);
    expect([await send(), await send()]).toEqual(['Tom', 'Tom']);
    await expect(send()).rejects.toEqual({
      code: 'TOO_MANY_REQUESTS',
      message: expect.stringContaining('exceeded'),
      retryAfterMs: 60_000,
      violatedPolicies: ['shared', 'messages'],
    });
    const { status, headers, body } = await call('/cats');
    expect([status, headers.get('retry-after'), headers.get('content-type')]).toEqual([
      429,
      '60',
      'application/problem+json; charset=utf-8',
    ]);
    expect(JSON.parse(body)).toMatchObject({ status: 429, 'violated-policies': ['shared'] });
    expect((await limits.peek('http', 'ip:127.0.0.1')).remaining).toBe(1);
    expect(warnings()).toEqual([]);
  });

  it('says at start-up that nothing limits the messages of one that inherits nothing', async () => {
    const { call, send } = await start([Cats], { inherit: false });
    for (let i = 0; i < 5; i++) expect(await send()).toBe('Tom');
    for (const status of [200, 200, 429]) expect((await call('/cats')).status).toBe(status);
    expect(warnings()).toEqual([
      'RL_GUARD_NOT_BOUND: no RateLimitGuard is bound to Cats.find: their limits are not checked',
      expect.stringContaining('RL_INTERCEPTOR_REQUIRED: no RateLimitInterceptor is bound to Cats.find'),
    ]);
  });

  it('says so where one of two inherits nothing, whichever is connected first', async () => {
    await start([Cats], { inherit: false }, { inherit: true });
    expect(warnings()).toHaveLength(2);
    await start([Cats], { inherit: true }, { inherit: false });
    expect(warnings()).toHaveLength(4);
  });

  it('says nothing where guard and interceptor are bound by hand, or nothing is limited', async () => {
    @Controller()
    class Bound {
      @MessagePattern('bound')
      @UseGuards(RateLimitGuard)
      @UseInterceptors(RateLimitInterceptor)
      @RateLimit('messages')
      bound() {
        return 'bound';
      }

      @MessagePattern('free')
      @SkipRateLimit()
      free() {
        return 'free';
      }
    }
    const { send } = await start([Bound], { inherit: false });
    expect([await send('bound'), await send('bound')]).toEqual(['bound', 'bound']);
    await expect(send('bound')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    expect(await send('free')).toBe('free');
    expect(warnings()).toEqual([]);
  });

  it('refuses a change that would need an interceptor which does not reach the messages', async () => {
    @Controller()
    class Guarded {
      @MessagePattern('cats')
      @UseGuards(RateLimitGuard)
      @RateLimit('shared')
      find() {
        return 'Tom';
      }

      // For this one a global interceptor is bound.
      @Get('cats')
      @RateLimit('messages')
      list() {
        return 'Tom';
      }
    }
    const { limits, send } = await start([Guarded], { inherit: false });
    await expect(limits.updatePolicy('shared', { enforceAt: 'interceptor' })).rejects.toMatchObject({
      code: 'RL_INTERCEPTOR_REQUIRED',
      message: expect.stringContaining('bound to Guarded.find') as string,
    });
    for (let i = 0; i < 3; i++) expect(await send()).toBe('Tom');
    await expect(send()).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
  });

  it.each([
    ['made for each message', Scope.REQUEST, false],
    ['made later', Scope.DEFAULT, true],
  ])('limits handlers that are %s, and gives no false alarm', async (_when, scope, later) => {
    @Controller({ scope })
    class Kittens {
      @MessagePattern('kittens')
      @RateLimit('messages')
      find() {
        return 'Kit';
      }
    }
    const { send } = await start([Kittens], { inherit: true, later });
    expect([await send('kittens'), await send('kittens')]).toEqual(['Kit', 'Kit']);
    await expect(send('kittens')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    expect(warnings()).toEqual([]);
  });
});
