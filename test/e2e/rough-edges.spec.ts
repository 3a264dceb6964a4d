import { setTimeout as pause } from 'node:timers/promises';
import { request as httpRequest } from 'node:http';
import { jest } from '@jest/globals';
import { Controller, Get, Injectable, Logger, Module, Scope } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { CommonLimit, RateLimit, RateLimiterService, RateLimitModule } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp, statuses } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
});

async function contextOf(metadata: Parameters<typeof Test.createTestingModule>[0]) {
  const testing = await Test.createTestingModule({
    ...metadata,
    imports: [RateLimitModule.forRoot({ clock: new ManualClock() }), ...(metadata.imports ?? [])],
  })
    .setLogger(false as never)
    .compile();
  return testing.init();
}

describe.each(ADAPTERS)('functions of policies that fail, on %s', (adapter) => {
  it('fail the call and nothing else, whichever of them throws first', async () => {
    @Controller()
    class Cats {
      @Get('parts')
      @RateLimit({
        name: 'parts',
        limit: 5,
        ...FIXED,
        key: [
          async ({ request }) => (request.user as { tenant: string }).tenant,
          ({ request }) => (request.user as { id: string }).id,
        ],
      })
      parts() {}

      @Get('policies')
      @RateLimit(
        {
          name: 'a',
          limit: 5,
          ...FIXED,
          skip: async () => {
            throw new Error('no skip');
          },
        },
        { name: 'b', limit: 5, ...FIXED, cost: () => 0 },
      )
      policies() {}
    }
    const unheard = jest.fn();
    process.on('unhandledRejection', unheard);
    const { call } = await startApp(adapter, { imports: [RateLimitModule.forRoot()], controllers: [Cats] });
    expect((await call('/parts')).status).toBe(500);
    expect((await call('/policies')).status).toBe(500);
    await pause(10);
    process.off('unhandledRejection', unheard);
    expect(unheard).not.toHaveBeenCalled();
  });

  it('gives back what countIf does not count of a client that left before it was let in', async () => {
    const held: (() => void)[] = [];
    const asked = jest.fn(() => false);
    @Controller()
    class Cats {
      @Get('slow')
      @RateLimit({
        name: 'slow',
        limit: 5,
        ...FIXED,
        key: () => new Promise((resolve) => held.push(() => resolve('somebody'))),
        countIf: asked,
      })
      slow() {
        return 'done';
      }
    }
    const { app } = await startApp(adapter, { imports: [RateLimitModule.forRoot()], controllers: [Cats] });
    const { port } = app.getHttpServer().address() as { port: number };
    const client = httpRequest({ port, path: '/slow' });
    client.on('error', () => {});
    client.end();
    while (held.length === 0) await pause(5);
    const gone = new Promise((resolve) => client.once('close', resolve));
    client.destroy();
    await gone;
    await pause(20);
    held[0]!();
    const limiter = app.get(RateLimiterService);
    for (let i = 0; asked.mock.calls.length === 0 && i < 100; i++) await pause(5);
    expect(asked).toHaveBeenCalledTimes(1);
    expect((await limiter.peek('slow', 'key:somebody')).remaining).toBe(5);
  });

  it('limits handlers that an instance has bound, and keeps one plan of them', async () => {
    @Controller({ scope: Scope.REQUEST })
    @RateLimit({ limit: 2, ...FIXED })
    class PerRequest {
      constructor() {
        this.go = this.go.bind(this);
      }
      @Get('per-request')
      go() {}
    }
    @Controller()
    class Single {
      constructor() {
        this.go = this.go.bind(this);
      }
      @Get('single')
      @RateLimit({ limit: 1, ...FIXED })
      go() {}
    }
    const { app, call } = await startApp(adapter, {
      imports: [RateLimitModule.forRoot()],
      controllers: [PerRequest, Single],
    });
    const policies = app.get(RateLimiterService).policies().length;
    expect(await statuses(() => call('/per-request'), 4)).toEqual([200, 200, 429, 429]);
    expect(await statuses(() => call('/single'), 2)).toEqual([200, 429]);
    expect(app.get(RateLimiterService).policies()).toHaveLength(policies);
  });

  it('counts a call without a user for its address, whatever userOf answers', async () => {
    @Controller()
    class Cats {
      @Get()
      @RateLimit({ name: 'mine', limit: 1, ...FIXED, key: 'user' })
      cats() {}
    }
    const { app, call } = await startApp(adapter, {
      imports: [RateLimitModule.forRoot({ userOf: () => null as never })],
      controllers: [Cats],
    });
    await call('/');
    const limiter = app.get(RateLimiterService);
    expect((await limiter.peek('mine', 'user:null')).remaining).toBe(1);
    expect((await limiter.peek('mine', 'ip:127.0.0.1')).remaining).toBe(0);
  });
});

describe('values and factories with limited methods', () => {
  class Mail {
    @CommonLimit({ limit: 1, ...FIXED })
    send(): string {
      return 'sent';
    }
  }

  it('leave an application that has closed, and belong to the one that started last', async () => {
    const shared = new Mail();
    const first = await contextOf({ providers: [{ provide: 'MAIL', useValue: shared }] });
    expect(await shared.send()).toBe('sent');
    const second = await contextOf({ providers: [{ provide: 'MAIL', useValue: shared }] });
    expect(await shared.send()).toBe('sent');
    await expect(Promise.resolve(shared.send())).rejects.toMatchObject({ retryAfterMs: 60_000 });
    await first.close();
    await expect(Promise.resolve(shared.send())).rejects.toMatchObject({ retryAfterMs: 60_000 });
    await second.close();
    await expect(Promise.resolve(shared.send())).rejects.toThrow(/^RL_NOT_BOUND/);
  });

  it('are told of where they are frozen', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const testing = await contextOf({
      providers: [{ provide: 'MAIL', useValue: Object.freeze(new Mail()) }],
    });
    expect(warn.mock.calls.flat().join()).toContain('RL_NOT_BOUND: an object of Mail is frozen');
    await testing.close();
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('are limited in scope %s too', async (scope) => {
    const testing = await contextOf({
      providers: [{ provide: 'MAIL', scope, useFactory: async () => new Mail() }],
    });
    const one = await testing.resolve<Mail>('MAIL');
    const other = await testing.resolve<Mail>('MAIL');
    expect(other).not.toBe(one);
    expect(await one.send()).toBe('sent');
    await expect(Promise.resolve(other.send())).rejects.toMatchObject({ retryAfterMs: 60_000 });
    await testing.close();
  });

  it('touch nothing that a factory makes and that has none', async () => {
    const config = Object.freeze({ url: 'x' });
    const testing = await contextOf({ providers: [{ provide: 'CONFIG', useFactory: () => config }] });
    expect(Object.getOwnPropertySymbols(testing.get('CONFIG'))).toEqual([]);
    await testing.close();
  });

  it('may have a symbol for a name', async () => {
    const SEND = Symbol('send');
    class Sender {
      @CommonLimit({ limit: 1, ...FIXED })
      [SEND](): string {
        return 'sent';
      }
    }
    const sender = new Sender();
    const testing = await contextOf({ providers: [{ provide: 'SENDER', useValue: sender }] });
    expect(await sender[SEND]()).toBe('sent');
    await expect(Promise.resolve(sender[SEND]())).rejects.toMatchObject({ retryAfterMs: 60_000 });
    await testing.close();
  });
});

describe('the exception of a denied method', () => {
  it('says in its message what a log needs', async () => {
    @Injectable()
    class Jobs {
      @CommonLimit({ name: 'nightly', limit: 1, ...FIXED })
      run() {}
    }
    const testing = await contextOf({ providers: [Jobs] });
    const jobs = testing.get(Jobs);
    await jobs.run();
    await expect(Promise.resolve(jobs.run())).rejects.toThrow(
      'Limit of 1 request per minute exceeded. Try again in 60 seconds. (nightly)',
    );
    await testing.close();
  });
});

describe('misuse that start-up tells of', () => {
  it('refuses an inline policy of a method with a key that only requests have', async () => {
    @Injectable()
    class Jobs {
      @CommonLimit({ limit: 1, ...FIXED, key: 'ip' })
      run() {}
    }
    await expect(contextOf({ providers: [Jobs] })).rejects.toThrow(
      /^RL_INVALID_KEY: @CommonLimit\(\) on Jobs.run.key/,
    );
  });

  it('warns of a named policy with such a key, unless the decorator names the subject', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    @Injectable()
    class Jobs {
      @CommonLimit('mine', { key: (id: string) => id })
      fine(_id: string) {}
      @CommonLimit('mine')
      run() {}
    }
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ policies: { mine: { limit: 1, ...FIXED, key: 'user' } } })],
      providers: [Jobs],
    }).compile();
    await testing.init();
    const told = warn.mock.calls.flat().filter((text) => String(text).startsWith('RL_OPTION_HAS_NO_EFFECT'));
    expect(told).toEqual([
      expect.stringContaining("'user' of policy 'mine' means nothing to @CommonLimit() on Jobs.run"),
    ]);
    await testing.close();
  });

  it('warns of @RateLimit() on what is no handler', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    @Injectable()
    class Orders {
      @RateLimit({ limit: 1, ...FIXED })
      place() {}
    }
    const testing = await contextOf({ providers: [Orders] });
    expect(warn.mock.calls.flat().join()).toContain('@RateLimit() on Orders.place has no effect');
    await testing.close();
  });

  it('names the option that is misspelt rather than the one that is missing for it', () => {
    expect(() =>
      RateLimitModule.forRoot({ policies: { api: { limit: 1, windw: '1m' } as never } }),
    ).not.toThrow();
    return expect(
      Test.createTestingModule({
        imports: [RateLimitModule.forRoot({ policies: { api: { limit: 1, windw: '1m' } as never } })],
      }).compile(),
    ).rejects.toThrow(/^RL_UNKNOWN_OPTION: policies.api.windw/);
  });

  it('refuses a list of policies', () =>
    expect(
      Test.createTestingModule({
        imports: [RateLimitModule.forRoot({ policies: [{ limit: 1, window: '1m' }] as never })],
      }).compile(),
    ).rejects.toThrow(/^RL_INVALID_OPTION: policies: expected an object of policies by name/));

  it('tells of an observer that throws, once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const observer = {
      decision() {
        throw new Error('out of ink');
      },
    };
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({ policies: { api: { limit: 9, ...FIXED } }, observers: [observer] }),
      ],
    }).compile();
    await testing.init();
    const limiter = testing.get(RateLimiterService);
    for (let i = 0; i < 3; i++) expect((await limiter.consume('api', 'a')).allowed).toBe(true);
    const told = warn.mock.calls.flat().filter((text) => String(text).startsWith('RL_OBSERVER_FAILED'));
    expect(told).toEqual([expect.stringContaining('decision() failed: out of ink')]);
    await testing.close();
  });
});

describe('a refund of what was charged under another limit', () => {
  it('gives back no more than was taken, less what has drained at the rate of today', async () => {
    const clock = new ManualClock();
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({
          clock,
          policies: { api: { limit: 1_000, window: '1s', algorithm: 'token-bucket' } },
        }),
      ],
    }).compile();
    await testing.init();
    const limiter = testing.get(RateLimiterService);
    const verdict = await limiter.consume('api', 'a');
    await limiter.consume('api', 'a', { cost: 999 });
    await limiter.updatePolicy('api', { limit: 1, burst: 1_000 });
    clock.advance(500);
    await limiter.refund(verdict);
    expect((await limiter.peek('api', 'a')).remaining).toBeLessThanOrEqual(2);
    await testing.close();
  });
});

@Module({})
class Later {}

describe('modules that are loaded later', () => {
  it('go on working beside watched factories', async () => {
    const testing = await contextOf({ providers: [] });
    await expect(testing.get(LazyModuleLoader).load(() => Later)).resolves.toBeDefined();
    await testing.close();
  });
});
