import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Injectable, Logger, type ModuleMetadata } from '@nestjs/common';
import { getQueueToken, BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  QueryBus,
  QueryHandler,
  type ICommandHandler,
  type IEventHandler,
  type IQueryHandler,
} from '@nestjs/cqrs';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  CommonLimit,
  RateLimiterService,
  RateLimitExceededException,
  RateLimitModule,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(30_000);

const HOURLY = { limit: 1, window: '1h', algorithm: 'fixed-window' } as const;
const HOUR = 3_600_000;

const opened: TestingModule[] = [];
let logged: string[] = [];

beforeEach(() => {
  logged = [];
});
afterEach(async () => {
  for (const testing of opened.splice(0)) await testing.close();
  Logger.overrideLogger(false);
});

async function start(metadata: ModuleMetadata, options: RateLimitModuleOptions): Promise<TestingModule> {
  const testing = await Test.createTestingModule({
    ...metadata,
    imports: [RateLimitModule.forRoot(options), ...(metadata.imports ?? [])],
  }).compile();
  const keep = (message: unknown) => void logged.push(String(message));
  testing.useLogger({ log: () => {}, warn: keep, error: keep });
  opened.push(testing);
  await testing.init();
  return testing;
}

describe('@nestjs/schedule', () => {
  @Injectable()
  class Jobs {
    readonly runs: Record<string, number> = {
      cron: 0,
      under: 0,
      interval: 0,
      timeout: 0,
      waiting: 0,
      failing: 0,
    };

    @Cron('0 0 1 1 *', { name: 'cron' })
    @CommonLimit(HOURLY, { onLimited: 'skip' })
    cron(): void {
      this.runs.cron!++;
    }

    /** The other way round. */
    @CommonLimit(HOURLY, { onLimited: 'skip' })
    @Cron('0 0 1 1 *', { name: 'under' })
    under(): void {
      this.runs.under!++;
    }

    @Interval('interval', 5)
    @CommonLimit(HOURLY, { onLimited: 'skip' })
    interval(): void {
      this.runs.interval!++;
    }

    @Timeout('timeout', 1)
    @CommonLimit(HOURLY, { onLimited: 'skip' })
    timeout(): void {
      this.runs.timeout!++;
    }

    @Cron('0 0 1 1 *', { name: 'waiting' })
    @CommonLimit(HOURLY, { onLimited: 'wait', maxWaitMs: 2 * HOUR })
    waiting(): void {
      this.runs.waiting!++;
    }

    @Cron('0 0 1 1 *', { name: 'failing' })
    @CommonLimit(HOURLY)
    failing(): void {
      this.runs.failing!++;
    }
  }

  const open = async () => {
    const clock = new ManualClock();
    const testing = await start({ imports: [ScheduleModule.forRoot()], providers: [Jobs] }, { clock });
    const registry = testing.get(SchedulerRegistry);
    return {
      clock,
      testing,
      jobs: testing.get(Jobs),
      tick: (name: string) => registry.getCronJob(name).fireOnTick(),
    };
  };

  it.each(['cron', 'under'])('runs @Cron once an hour, and warns once of what it skips: %s', async (name) => {
    const { clock, jobs, tick } = await open();
    for (let i = 0; i < 5; i++) await tick(name);
    await until(() => logged.length > 0);
    expect(jobs.runs[name]).toBe(1);
    expect(logged).toEqual([
      expect.stringMatching(
        new RegExp(
          `^RL_CALLS_SKIPPED: Jobs\\.${name} is over the limit of policy .*: calls are skipped for \\d+ ms$`,
        ),
      ),
    ]);
    clock.advance(HOUR);
    await tick(name);
    await until(() => jobs.runs[name] === 2);
  });

  it('runs @Interval once an hour, however often it ticks', async () => {
    const { clock, jobs } = await open();
    await until(() => logged.some((line) => line.includes('Jobs.interval is over the limit')));
    expect(jobs.runs.interval).toBe(1);
    clock.advance(HOUR);
    await until(() => jobs.runs.interval === 2);
    expect(logged.filter((line) => line.includes('Jobs.interval')).length).toBeLessThanOrEqual(2);
  });

  it('runs @Timeout', async () => {
    const { jobs } = await open();
    await until(() => jobs.runs.timeout === 1);
  });

  it('has ticks wait their turn, and lets them go when the application ends', async () => {
    const { clock, testing, jobs, tick } = await open();
    for (let i = 0; i < 3; i++) void tick('waiting');
    await until(() => jobs.runs.waiting === 1);
    clock.advance(HOUR);
    await until(() => jobs.runs.waiting === 2);
    await testing.close();
    await until(() => logged.some((line) => line.includes('the limiter was closed')));
    expect(jobs.runs.waiting).toBe(2);
  });

  it('logs a tick that throws, and goes on', async () => {
    const { clock, jobs, tick } = await open();
    await tick('failing');
    await tick('failing');
    await until(() => logged.some((line) => line.includes('Limit of 1 request per hour exceeded')));
    clock.advance(HOUR);
    await tick('failing');
    await until(() => jobs.runs.failing === 2);
  });
});

it('limits listeners of @nestjs/event-emitter', async () => {
  @Injectable()
  class Mailer {
    sent = 0;

    @OnEvent('signed.up')
    @CommonLimit({ ...HOURLY, limit: 2 }, { onLimited: ({ retryAfterMs }) => `later: ${retryAfterMs}` })
    greet(): string {
      this.sent++;
      return 'sent';
    }
  }
  const testing = await start(
    { imports: [EventEmitterModule.forRoot()], providers: [Mailer] },
    { clock: new ManualClock(0) },
  );
  const events = testing.get(EventEmitter2);
  // Listeners are added when the application has started.
  await until(() => events.listenerCount('signed.up') === 1);
  const answers: unknown[] = [];
  for (let i = 0; i < 3; i++) answers.push(...(await events.emitAsync('signed.up')));
  expect(answers).toEqual(['sent', 'sent', `later: ${HOUR}`]);
  expect(testing.get(Mailer).sent).toBe(2);
});

it('limits the handlers of @nestjs/cqrs', async () => {
  class Order {
    constructor(readonly customer: string) {}
  }
  class Ordered {}
  class Orders {}

  @CommandHandler(Order)
  class OrderHandler implements ICommandHandler<Order> {
    @CommonLimit(HOURLY, { key: ({ customer }: Order) => customer })
    async execute({ customer }: Order): Promise<string> {
      return `ordered by ${customer}`;
    }
  }

  @QueryHandler(Orders)
  class OrdersHandler implements IQueryHandler<Orders> {
    @CommonLimit(HOURLY, { onLimited: () => 'as before' })
    async execute(): Promise<string> {
      return 'fresh';
    }
  }

  @EventsHandler(Ordered)
  class OrderedHandler implements IEventHandler<Ordered> {
    handled = 0;

    @CommonLimit(HOURLY, { onLimited: 'skip' })
    handle(): void {
      this.handled++;
    }
  }

  const testing = await start(
    { imports: [CqrsModule.forRoot()], providers: [OrderHandler, OrdersHandler, OrderedHandler] },
    { clock: new ManualClock() },
  );
  const commands = testing.get(CommandBus);
  expect(await commands.execute(new Order('ann'))).toBe('ordered by ann');
  await expect(commands.execute(new Order('ann'))).rejects.toThrow(RateLimitExceededException);
  expect(await commands.execute(new Order('bob'))).toBe('ordered by bob');
  const queries = testing.get(QueryBus);
  expect([await queries.execute(new Orders()), await queries.execute(new Orders())]).toEqual([
    'fresh',
    'as before',
  ]);
  for (let i = 0; i < 3; i++) testing.get(EventBus).publish(new Ordered());
  await until(() => logged.some((line) => line.includes('OrderedHandler.handle is over the limit')));
  expect(testing.get(OrderedHandler).handled).toBe(1);
});

describe('with Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it('has the jobs of a queue wait their turn', async () => {
    @Processor('mails', { concurrency: 4 })
    class Mails extends WorkerHost {
      readonly done: { name: string; at: number }[] = [];

      @CommonLimit('mails', { onLimited: 'wait', maxWaitMs: 20_000 })
      override async process({ name }: { name: string }): Promise<string> {
        this.done.push({ name, at: Date.now() });
        return name;
      }
    }
    const testing = await start(
      {
        imports: [
          BullModule.forRoot({ connection: { url: server.url } }),
          BullModule.registerQueue({ name: 'mails' }),
        ],
        providers: [Mails],
      },
      // Two at once, then one in 50 ms.
      { policies: { mails: { limit: 1, window: 50, algorithm: 'gcra', burst: 2 } } },
    );
    const queue = testing.get<{ add: (name: string, data: object) => Promise<unknown> }>(
      getQueueToken('mails'),
    );
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) await queue.add(name, {});
    const { done } = testing.get(Mails);
    await until(() => done.length === names.length);
    expect(done.map(({ name }) => name).toSorted()).toEqual(names);
    // Four had to wait: 50 ms each, less what timers and Date.now() disagree about.
    expect(done.at(-1)!.at - done[0]!.at).toBeGreaterThanOrEqual(4 * 50 - 5);
  });

  it('runs a job once an interval in a fleet of four, also while Redis is away and when it is back, empty', async () => {
    // Shorter than three heartbeats: who was silent for so long is not taken for gone.
    const INTERVAL = 4_000;
    let runs = 0;

    @Injectable()
    class Report {
      @Cron('0 0 1 1 *', { name: 'report' })
      @CommonLimit({ limit: 1, window: INTERVAL, algorithm: 'fixed-window' }, { onLimited: 'skip' })
      run(): void {
        runs++;
      }
    }
    const clock = new ManualClock(1_000 * INTERVAL);
    // The smallest part of a limit is 1 by default: each of four would run the job while Redis is away.
    const options: RateLimitModuleOptions = {
      redis: server.url,
      prefix: 'jobs',
      clock,
      hybrid: { minShare: 0, expectedInstances: 4 },
    };
    const fleet: TestingModule[] = [];
    for (let i = 0; i < 4; i++) {
      fleet.push(await start({ imports: [ScheduleModule.forRoot()], providers: [Report] }, options));
    }
    const statuses = () => fleet.map((instance) => instance.get(RateLimiterService).status());
    const beatUntil = (condition: () => boolean) =>
      until(() => {
        clock.advance(100);
        return condition();
      });
    await beatUntil(() => statuses().every(({ fleetSize }) => fleetSize === 4));
    const toNextInterval = () => clock.set((Math.floor(clock.now() / INTERVAL) + 1) * INTERVAL);
    toNextInterval();

    const tickAll = async () => {
      for (let round = 0; round < 3; round++) {
        await Promise.all(fleet.map((one) => one.get(SchedulerRegistry).getCronJob('report').fireOnTick()));
      }
      // What a tick starts is not waited for.
      await Promise.all(fleet.map((one) => one.get(Report).run()));
    };
    await tickAll();
    expect(runs).toBe(1);
    clock.advance(INTERVAL);
    await tickAll();
    expect(runs).toBe(2);

    await server.kill();
    await tickAll();
    // Within the interval in which it failed, and in the next one without it.
    expect(runs).toBe(2);
    clock.advance(INTERVAL);
    await tickAll();
    // A denial that is remembered would not have asked Redis.
    expect(statuses().every(({ breaker }) => breaker !== 'closed')).toBe(true);
    expect(runs).toBe(3);

    await server.restart();
    await beatUntil(() => statuses().every(({ breaker }) => breaker === 'closed'));
    toNextInterval();
    await tickAll();
    expect(runs).toBe(4);
    clock.advance(INTERVAL);
    await tickAll();
    expect(runs).toBe(5);
  });
});
