import {
  Controller,
  Get,
  Inject,
  Injectable,
  Logger,
  Module,
  Scope,
  SetMetadata,
  type ModuleMetadata,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  CommonLimit,
  InjectLimiter,
  RateLimiterService,
  RateLimitExceededException,
  RateLimitModule,
  type Limiter,
  type PolicyResolver,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { disableRateLimits, ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

const opened: TestingModule[] = [];

async function start(metadata: ModuleMetadata, options: RateLimitModuleOptions = {}): Promise<TestingModule> {
  const testing = await Test.createTestingModule({
    ...metadata,
    imports: [RateLimitModule.forRoot({ clock: new ManualClock(), ...options }), ...(metadata.imports ?? [])],
  })
    .setLogger(false as never)
    .compile();
  await testing.init();
  opened.push(testing);
  return testing;
}

afterEach(async () => {
  for (const testing of opened.splice(0)) await testing.close();
  await closeApps();
});

@Injectable()
class Orders {
  placed = 0;

  @CommonLimit({ limit: 2, ...FIXED })
  place(count: number): number {
    this.placed += count;
    return this.placed;
  }

  @CommonLimit('named', { key: (customer: string) => customer, cost: (_customer: string, cost = 1) => cost })
  pay(customer: string, _cost?: number): string {
    return customer;
  }

  @CommonLimit()
  byDefault(): string {
    return 'done';
  }
}

const POLICIES = { named: { limit: 3, ...FIXED }, default: { limit: 1, ...FIXED } };

describe('@CommonLimit()', () => {
  it('lets calls through up to the limit, then throws', async () => {
    const orders = (await start({ providers: [Orders] }, { policies: POLICIES })).get(Orders);
    expect(orders.place(1)).toBeInstanceOf(Promise);
    expect(await orders.place(1)).toBe(2);
    const denial = await Promise.resolve(orders.place(1)).then(
      () => undefined,
      (error: unknown) => error as RateLimitExceededException,
    );
    expect(denial).toBeInstanceOf(RateLimitExceededException);
    expect(denial!.getStatus()).toBe(429);
    expect(denial!.retryAfterMs).toBe(60_000);
    expect(denial!.verdicts).toMatchObject([
      { policy: 'RootTestModule.Orders.place', subject: 'global', allowed: false },
    ]);
    expect(orders.placed).toBe(2);
  });

  it('takes subject and cost from the arguments', async () => {
    const testing = await start({ providers: [Orders] }, { policies: POLICIES });
    const orders = testing.get(Orders);
    expect(await orders.pay('ann', 3)).toBe('ann');
    await expect(orders.pay('ann')).rejects.toThrow(RateLimitExceededException);
    expect(await orders.pay('bob')).toBe('bob');
    const { remaining } = await testing.get(RateLimiterService).peek('named', 'key:bob');
    expect(remaining).toBe(2);
    await expect(orders.pay('bob', 0.5)).rejects.toMatchObject({ code: 'RL_INVALID_COST' });
    expect((await testing.get(RateLimiterService).peek('named', 'key:bob')).remaining).toBe(2);
  });

  it('takes numbers as text, as a policy does', async () => {
    @Injectable()
    class Textual {
      @CommonLimit('named', {
        cost: '2' as unknown as number,
        onLimited: 'wait',
        maxWaitMs: '0' as unknown as number,
      })
      run() {
        return 'ran';
      }
    }
    const testing = await start({ providers: [Textual] }, { policies: POLICIES });
    expect(await testing.get(Textual).run()).toBe('ran');
    expect((await testing.get(RateLimiterService).peek('named')).remaining).toBe(1);
    await expect(Promise.resolve(testing.get(Textual).run())).rejects.toThrow(RateLimitExceededException);
  });

  it('uses the policy default where none is named', async () => {
    const orders = (await start({ providers: [Orders] }, { policies: POLICIES })).get(Orders);
    expect(await orders.byDefault()).toBe('done');
    await expect(orders.byDefault()).rejects.toThrow(RateLimitExceededException);
  });

  it('works on providers of every kind and scope', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @CommonLimit('named')
      run() {
        return 'request';
      }
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      @CommonLimit('named')
      run() {
        return 'transient';
      }
    }
    class Made {
      constructor(readonly name: string) {}
      @CommonLimit('named')
      run() {
        return this.name;
      }
    }
    const testing = await start(
      {
        providers: [
          PerRequest,
          Transient,
          { provide: 'factory', useFactory: async () => new Made('factory') },
          { provide: 'value', useValue: new Made('value') },
        ],
      },
      { policies: { named: { limit: 4, ...FIXED } } },
    );
    const runners: { run(): unknown }[] = [
      await testing.resolve(PerRequest),
      await testing.resolve(Transient),
      testing.get('factory'),
      testing.get('value'),
    ];
    expect(await Promise.all(runners.map((runner) => runner.run()))).toEqual([
      'request',
      'transient',
      'factory',
      'value',
    ]);
    for (const runner of runners) await expect(runner.run()).rejects.toThrow(RateLimitExceededException);
  });

  it('counts classes that a factory makes for each object together, and keeps one policy of them', async () => {
    class Base {
      @CommonLimit({ limit: 2, ...FIXED })
      send() {
        return 'sent';
      }
    }
    const testing = await start({
      providers: [
        {
          provide: 'mailer',
          scope: Scope.TRANSIENT,
          useFactory: () => {
            class Mailer extends Base {}
            return new Mailer();
          },
        },
      ],
    });
    const sent: unknown[] = [];
    for (let i = 0; i < 20; i++) {
      const mailer = await testing.resolve<Base>('mailer');
      sent.push(await Promise.resolve(mailer.send()).catch(() => 'denied'));
    }
    expect(sent.filter((answer) => answer === 'sent')).toHaveLength(2);
    expect(testing.get(RateLimiterService).policies()).toHaveLength(1);
  });

  it('counts an inline policy for each class that inherits the method', async () => {
    abstract class Base {
      @CommonLimit({ limit: 1, ...FIXED })
      run() {
        return this.constructor.name;
      }
    }
    @Injectable()
    class A extends Base {}
    @Injectable()
    class B extends Base {}
    const testing = await start({ providers: [A, B] });
    expect(await testing.get(A).run()).toBe('A');
    expect(await testing.get(B).run()).toBe('B');
    await expect(testing.get(A).run()).rejects.toThrow(RateLimitExceededException);
  });

  it('checks two decorators on one method one after the other', async () => {
    @Injectable()
    class Twice {
      @CommonLimit({ limit: 5, ...FIXED })
      @CommonLimit({ limit: 1, ...FIXED })
      run() {
        return 1;
      }
    }
    const testing = await start({ providers: [Twice] });
    await testing.get(Twice).run();
    await expect(testing.get(Twice).run()).rejects.toThrow(RateLimitExceededException);
    const names = testing
      .get(RateLimiterService)
      .policies()
      .map(({ name }) => name);
    expect(names).toEqual(['RootTestModule.Twice.run', 'RootTestModule.Twice.run#2']);
  });

  it('keeps name, length and metadata, whichever decorator comes first', () => {
    class Tagged {
      @SetMetadata('above', 1)
      @CommonLimit('named')
      @SetMetadata('below', 2)
      run(_a: string, _b: string) {
        return 1;
      }
    }
    const run = Object.getOwnPropertyDescriptor(Tagged.prototype, 'run')!.value as () => unknown;
    expect(run.name).toBe('run');
    expect(run).toHaveLength(2);
    expect(Reflect.getMetadata('above', run)).toBe(1);
    expect(Reflect.getMetadata('below', run)).toBe(2);
  });

  it('passes what the method throws on as a rejection', async () => {
    @Injectable()
    class Failing {
      @CommonLimit({ limit: 9, ...FIXED })
      run(): never {
        throw new RangeError('no');
      }
    }
    const testing = await start({ providers: [Failing] });
    await expect(Promise.resolve(testing.get(Failing).run())).rejects.toThrow(RangeError);
  });

  it('gives back what countIf does not count', async () => {
    @Injectable()
    class Flaky {
      @CommonLimit({
        name: 'flaky',
        limit: 2,
        ...FIXED,
        countIf: ({ error, result }) => error === undefined && result !== 0,
      })
      async run(result: number) {
        if (result < 0) throw new Error('negative');
        return result;
      }
    }
    const testing = await start({ providers: [Flaky] });
    const flaky = testing.get(Flaky);
    await flaky.run(0);
    await expect(flaky.run(-1)).rejects.toThrow('negative');
    expect((await testing.get(RateLimiterService).peek('flaky')).remaining).toBe(2);
    await flaky.run(1);
    expect((await testing.get(RateLimiterService).peek('flaky')).remaining).toBe(1);
  });

  it('skips with one warning for each time it starts', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      const clock = new ManualClock();
      @Injectable()
      class Job {
        @CommonLimit({ limit: 1, ...FIXED }, { onLimited: 'skip' })
        tick() {
          return 'ran';
        }
      }
      const job = (await start({ providers: [Job] }, { clock })).get(Job);
      expect([await job.tick(), await job.tick(), await job.tick()]).toEqual(['ran', undefined, undefined]);
      expect(warn).toHaveBeenCalledTimes(1);
      expect(warn.mock.calls[0]![0]).toBe(
        // Who was over the limit is not told: the subject may be somebody's name.
        "RL_CALLS_SKIPPED: Job.tick is over the limit of policy 'RootTestModule.Job.tick': calls are skipped for 60000 ms",
      );
      clock.advance(60_000);
      expect([await job.tick(), await job.tick()]).toEqual(['ran', undefined]);
      expect(warn).toHaveBeenCalledTimes(2);
    } finally {
      warn.mockRestore();
    }
  });

  it('warns of many subjects that are skipped once a minute, and of one each time it starts', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    try {
      const clock = new ManualClock();
      @Injectable()
      class Mail {
        @CommonLimit({ limit: 1, window: '1s' }, { onLimited: 'skip', key: (to: string) => to })
        send(_to: string) {
          return 'sent';
        }
      }
      const mail = (await start({ providers: [Mail] }, { clock })).get(Mail);
      const sendAll = async () => {
        for (let i = 0; i < 20; i++)
          expect([await mail.send(`${i}`), await mail.send(`${i}`)]).toEqual(['sent', undefined]);
      };
      await sendAll();
      expect(warn).toHaveBeenCalledTimes(1);
      clock.advance(2_000);
      // The first one starts again, the others are still quiet.
      await sendAll();
      expect(warn).toHaveBeenCalledTimes(2);
      clock.advance(60_000);
      await mail.send('7');
      await mail.send('7');
      expect(warn).toHaveBeenCalledTimes(3);
    } finally {
      warn.mockRestore();
    }
  });

  it.each(['throw', 'wait'] as const)(
    'tells the resolver of the call that is limited by %s',
    async (onLimited) => {
      const calls: unknown[] = [];
      @Injectable()
      class Reports {
        @CommonLimit({ name: 'reports', limit: 1, ...FIXED }, { onLimited })
        make(_tenant: string) {
          return 'made';
        }
      }
      const resolver: PolicyResolver = {
        resolve: ({ call }) => {
          calls.push(call?.methodName, call?.args);
          return [{ limit: 2 }];
        },
      };
      const reports = (await start({ providers: [Reports] }, { resolver })).get(Reports);
      await reports.make('acme');
      expect(calls).toEqual(['make', ['acme']]);
    },
  );

  it('asks a function what to answer instead', async () => {
    @Injectable()
    class Cached {
      @CommonLimit(
        { limit: 1, ...FIXED },
        { onLimited: ({ retryAfterMs }, id: string) => `${id} in ${retryAfterMs}` },
      )
      fetch(id: string): unknown {
        return id;
      }
    }
    const cached = (await start({ providers: [Cached] })).get(Cached);
    expect([await cached.fetch('a'), await cached.fetch('b')]).toEqual(['a', 'b in 60000']);
  });

  it('waits in arrival order, and no longer than it may', async () => {
    const clock = new ManualClock();
    @Injectable()
    class Queue {
      readonly done: number[] = [];
      @CommonLimit({ limit: 1, ...FIXED }, { onLimited: 'wait', maxWaitMs: 120_000 })
      run(id: number) {
        this.done.push(id);
      }
    }
    const queue = (await start({ providers: [Queue] }, { clock })).get(Queue);
    const runs = [1, 2, 3, 4].map((id) =>
      Promise.resolve(queue.run(id)).then(
        () => id,
        (e: unknown) => e,
      ),
    );
    await tick();
    expect(queue.done).toEqual([1]);
    clock.advance(60_000);
    await tick();
    expect(queue.done).toEqual([1, 2]);
    clock.advance(60_000);
    expect(await Promise.all(runs.slice(0, 3))).toEqual([1, 2, 3]);
    expect(await runs[3]).toBeInstanceOf(RateLimitExceededException);
    expect(queue.done).toEqual([1, 2, 3]);
  });

  it('refuses static methods and accessors', () => {
    expect(() => {
      class Misuse {
        @CommonLimit('named')
        static run() {}
      }
      return Misuse;
    }).toThrow('RL_INVALID_OPTION: @CommonLimit() on run: expected a method of instances');
  });

  it('fails on an object that Nest never saw, unless limits are disabled', async () => {
    await expect(Promise.resolve(new Orders().place(1))).rejects.toMatchObject({
      code: 'RL_NOT_BOUND',
      message: expect.stringContaining('disableRateLimits()') as string,
    });
    const enable = disableRateLimits();
    try {
      expect(await new Orders().place(1)).toBe(1);
    } finally {
      enable();
    }
    await expect(Promise.resolve(new Orders().place(1))).rejects.toMatchObject({ code: 'RL_NOT_BOUND' });
  });

  it('keeps two applications of one process apart', async () => {
    const one = await start({ providers: [Orders] }, { policies: POLICIES });
    const two = await start({ providers: [Orders] }, { policies: POLICIES });
    await one.get(Orders).byDefault();
    await expect(one.get(Orders).byDefault()).rejects.toThrow(RateLimitExceededException);
    expect(await two.get(Orders).byDefault()).toBe('done');
  });

  it('checks policy names when the application starts', async () => {
    await expect(
      start({ providers: [Orders] }, { policies: { default: POLICIES.default } }),
    ).rejects.toMatchObject({
      code: 'RL_UNKNOWN_POLICY',
      message: expect.stringContaining('@CommonLimit() on Orders.pay') as string,
    });
  });
});

describe.each(ADAPTERS)('a denial out of a limited method, on %s', (adapter) => {
  it('is a 429 of its own', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @CommonLimit('default')
      list() {
        return ['tom'];
      }
    }
    const { call } = await startApp(adapter, {
      imports: [RateLimitModule.forRoot({ clock: new ManualClock(), policies: POLICIES })],
      controllers: [Cats],
    });
    expect((await call('/cats')).body).toBe('["tom"]');
    const denied = await call('/cats');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('60');
    expect(denied.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  });
});

describe('@InjectLimiter()', () => {
  it('injects a limiter of one policy', async () => {
    @Injectable()
    class Mailer {
      constructor(@InjectLimiter('named') readonly limiter: Limiter) {}
    }
    const mailer = (await start({ providers: [Mailer] }, { policies: POLICIES })).get(Mailer);
    expect(mailer.limiter.policy.limit).toBe(3);
    expect(await mailer.limiter.tryAcquire('x', { cost: 3 })).toBe(true);
    expect(mailer.limiter.tryAcquireSync('x')).toBe(false);
  });

  it('fails at start-up where there is no such policy', async () => {
    @Injectable()
    class Mailer {
      constructor(@InjectLimiter('nowhere') readonly limiter: Limiter) {}
    }
    await expect(start({ providers: [Mailer] })).rejects.toMatchObject({ code: 'RL_UNKNOWN_POLICY' });
  });
});

describe('RateLimitModule.forRootAsync()', () => {
  const options: RateLimitModuleOptions = { policies: { api: { limit: 7, ...FIXED } } };

  @Injectable()
  class Settings {
    createRateLimitOptions() {
      return options;
    }
  }

  @Module({ providers: [Settings], exports: [Settings] })
  class SettingsModule {}

  it.each([
    [
      'useFactory',
      {
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: async (s: Settings) => s.createRateLimitOptions(),
      },
    ],
    ['useClass', { useClass: Settings }],
    ['useExisting', { imports: [SettingsModule], useExisting: Settings }],
  ])('takes options from %s', async (_name, given) => {
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRootAsync(given)],
    }).compile();
    await testing.init();
    opened.push(testing);
    expect(testing.get(RateLimiterService).policies()).toMatchObject([
      { name: 'api', limit: 7, windowMs: 60_000 },
    ]);
  });

  it('makes resolver and observer classes with their dependencies', async () => {
    const seen: string[] = [];
    @Injectable()
    class Plans {
      readonly limit = 2;
    }
    @Injectable()
    class Resolver {
      constructor(@Inject(Plans) private readonly plans: Plans) {}
      resolve() {
        return [{ limit: this.plans.limit }];
      }
    }
    class Watcher {
      decision(event: { outcome: string }) {
        seen.push(event.outcome);
      }
    }
    const testing = await start(
      { providers: [Plans, Resolver] },
      { ...options, resolver: Resolver, observers: [Watcher] },
    );
    const service = testing.get(RateLimiterService);
    expect(await service.consume('api', 'x')).toMatchObject({ allowed: true, limit: 2, remaining: 1 });
    expect(await service.consume('api', 'x')).toMatchObject({ allowed: true });
    expect(await service.consume('api', 'x')).toMatchObject({ allowed: false });
    expect(seen).toEqual(['allowed', 'allowed', 'denied']);
  });
});

function tick(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
