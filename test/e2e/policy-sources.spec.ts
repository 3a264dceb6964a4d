import { execFileSync } from 'node:child_process';
import 'reflect-metadata';
import { jest } from '@jest/globals';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, Injectable, Logger } from '@nestjs/common';
import {
  CommonLimit,
  fileSource,
  InjectLimiter,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  redisSource,
  type Limiter,
  type PolicySet,
  type PolicySource,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp, statuses, type AdapterName } from '../support/http-app.js';
import { startCluster, startRedis, until, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(40_000);

const FIXED = { window: '1h', algorithm: 'fixed-window' } as const;

@Controller()
class CatsController {
  @Get('cats')
  @RateLimit('api')
  cats(): string {
    return 'Tom';
  }

  @Get('birds')
  @RateLimit({ policy: 'api', cost: 1 })
  birds(): string {
    return 'Tweety';
  }

  @Get('dogs')
  @RateLimit({ limit: 5, ...FIXED })
  dogs(): string {
    return 'Rex';
  }
}

@Injectable()
class Reports {
  constructor(@InjectLimiter('sourced') readonly limiter: Limiter) {}

  @CommonLimit('sourced', { onLimited: () => 'later' })
  build(): string {
    return 'built';
  }
}

let logged: string[] = [];
beforeEach(() => {
  logged = [];
  for (const level of ['log', 'warn'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => void logged.push(String(line)));
  }
});
afterEach(async () => {
  await closeApps();
  jest.restoreAllMocks();
});

async function start(options: RateLimitModuleOptions, adapter: AdapterName = 'express') {
  const started = await startApp(adapter, {
    imports: [RateLimitModule.forRoot(options)],
    controllers: [CatsController],
  });
  return { ...started, service: started.app.get(RateLimiterService) };
}

const limitOf = (service: RateLimiterService, name: string) =>
  service.policies().find((policy) => policy.name === name)?.limit;
const told = (code: string) => logged.filter((line) => line.includes(code));

/** A configuration centre of the test's own. */
function centre(policies: PolicySet, name = 'centre', unit: 'set' | 'policy' = 'set') {
  let tell: (set: PolicySet) => void = () => {};
  const closed: string[] = [];
  const source: PolicySource = {
    name,
    unit,
    open: ({ changed }) => {
      tell = changed;
      return { policies, close: () => void closed.push(name) };
    },
  };
  return { source, closed, tell: (set: PolicySet) => tell(set) };
}

describe('precedence, from the lowest to the highest', () => {
  const code = { limit: 1, ...FIXED };

  it.each<[string, PolicySet, PolicySet, number]>([
    ['the code', {}, {}, 1],
    ['a source', { api: { limit: 2 } }, {}, 2],
    ['a later source', { api: { limit: 2 } }, { api: { limit: 3 } }, 3],
    ['a source under one that says something else', { api: { limit: 2 } }, { api: { block: '1s' } }, 2],
  ])('%s', async (_what, low, high, limit) => {
    const { service, call } = await start({
      policies: { api: code },
      sources: [centre(low).source, centre(high, 'another').source],
    });
    expect(limitOf(service, 'api')).toBe(limit);
    const answers = await statuses(() => call('/cats'), limit + 1);
    expect(answers).toEqual([...Array.from({ length: limit }, () => 200), 429]);
  });

  it('updatePolicy() in the process, until a source changes the same field', async () => {
    const { source, tell } = centre({ api: { limit: 2 } });
    const { service } = await start({ policies: { api: code }, sources: [source] });
    await service.updatePolicy('api', { limit: 7, block: '1s' });
    expect(limitOf(service, 'api')).toBe(7);
    tell({ api: { limit: 2, burst: undefined } });
    expect(limitOf(service, 'api')).toBe(7);
    tell({ api: { limit: 4 } });
    expect(service.policies().find(({ name }) => name === 'api')).toMatchObject({ limit: 4, blockMs: 1_000 });
  });

  it.each([
    ['a resolver, for its subjects', '/cats', [200, 200, 429]],
    ['the decorator of a handler, for the cost that it says', '/birds', [200, 200, 200, 200, 429]],
  ])('%s', async (_what, path, answers) => {
    const { source } = centre({ api: { limit: 2, cost: 2 } });
    const { call } = await start({
      policies: { api: code },
      sources: [source],
      resolver: { resolve: ({ charges }) => charges.map(() => ({ limit: 4 })) },
    });
    expect(await statuses(() => call(path), answers.length)).toEqual(answers);
  });

  it('an inline policy under a source that names it', async () => {
    const { service, call } = await start({
      policies: { api: code },
      sources: [centre({ 'RootTestModule.CatsController.dogs': { limit: 1 } }).source],
    });
    expect(limitOf(service, 'RootTestModule.CatsController.dogs')).toBe(1);
    expect(await statuses(() => call('/dogs'), 2)).toEqual([200, 429]);
  });
});

it('tells who changes a policy for the fleet that a later source says otherwise', async () => {
  const fleet = centre({}, 'fleet');
  const open: PolicySource['open'] = async (context) => ({
    ...(await fleet.source.open(context)),
    update: async (name, patch) => fleet.tell({ [name]: patch }),
  });
  const { service } = await start({
    policies: { api: { limit: 1, ...FIXED } },
    sources: [{ ...fleet.source, open }, centre({ api: { limit: 7 } }, 'file').source],
  });
  const scope = { scope: 'fleet' } as const;
  expect(await service.updatePolicy('api', { limit: 50, block: '1s' }, scope)).toMatchObject({
    limit: 7,
    blockMs: 1_000,
  });
  expect(told('RL_OPTION_HAS_NO_EFFECT')).toEqual([
    "RL_OPTION_HAS_NO_EFFECT: updatePolicy('api'): limit is stored for the fleet, but what file says, a later source, holds",
  ]);
  await service.updatePolicy('api', { cost: 2 }, scope);
  expect(told('RL_OPTION_HAS_NO_EFFECT')).toHaveLength(1);
});

describe('a policy that only a source defines', () => {
  it('can be named by decorators, by @InjectLimiter, globally and by the service', async () => {
    const { source, tell, closed } = centre({
      sourced: { limit: 1, ...FIXED, key: 'global' },
      api: { limit: 9, ...FIXED },
    });
    const started = await startApp('express', {
      imports: [RateLimitModule.forRoot({ sources: [source], global: 'sourced' })],
      controllers: [CatsController],
      providers: [Reports],
    });
    const reports = started.app.get(Reports);
    expect(reports.limiter.policy.limit).toBe(1);
    expect(await reports.build()).toBe('built');
    expect(await reports.build()).toBe('later');
    expect((await started.call('/cats')).status).toBe(429);
    tell({ sourced: { limit: 3, ...FIXED, key: 'global' }, api: { limit: 9, ...FIXED } });
    // What was used stays used.
    expect(await reports.build()).toBe('built');
    expect((await started.call('/cats')).status).toBe(200);
    expect(await reports.build()).toBe('later');
    await closeApps();
    expect(closed).toEqual(['centre']);
  });

  it('is told of where it is meant for a decorator that there is not', async () => {
    const { source } = centre({
      'RootTestModule.CatsControler.dogs': { limit: 1, ...FIXED },
      'RootTestModule.CatsController.dogs': { limit: 1, ...FIXED },
      sourced: { limit: 1, ...FIXED },
    });
    await start({ sources: [source], policies: { api: { limit: 1, ...FIXED } } });
    expect(told('RL_UNKNOWN_POLICY')).toEqual([
      "RL_UNKNOWN_POLICY: centre: policy 'RootTestModule.CatsControler.dogs' has no effect: no decorator has an inline policy of that name",
    ]);
  });

  it('keeps what it was when the source says nothing of it any more, and one says so', async () => {
    const { source, tell } = centre({ api: { limit: 2, ...FIXED } });
    const { service } = await start({ sources: [source] });
    tell({});
    expect(limitOf(service, 'api')).toBe(2);
    expect(told('RL_POLICY_KEPT')).toHaveLength(1);
  });
});

it('starts afresh where a source changes the algorithm', async () => {
  const { source, tell } = centre({ api: { limit: 2, ...FIXED } });
  const { call } = await start({ sources: [source], clock: new ManualClock() });
  expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
  tell({ api: { limit: 2, window: '1h', algorithm: 'token-bucket' } });
  expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
});

describe('what a source says wrongly', () => {
  it('fails the start', async () => {
    const { source } = centre({ api: { limit: -1, window: '1m' } });
    await expect(start({ sources: [source] })).rejects.toMatchObject({ code: 'RL_INVALID_LIMIT' });
  });

  it('changes nothing while the application runs: the whole set is refused, and each new one is told of', async () => {
    const { source, tell } = centre({ api: { limit: 2, ...FIXED } });
    const { service } = await start({ policies: { other: { limit: 1, ...FIXED } }, sources: [source] });
    tell({ api: { limit: 5, ...FIXED }, other: { limit: -1 } });
    expect([limitOf(service, 'api'), limitOf(service, 'other')]).toEqual([2, 1]);
    // Each by itself can be, but not together with what the code says.
    tell({ api: { limit: 5, ...FIXED, cost: 6 } });
    expect(limitOf(service, 'api')).toBe(2);
    tell(null as never);
    expect(told('RL_SOURCE_REJECTED')).toHaveLength(3);
    tell({ api: { limit: 5, ...FIXED } });
    expect(limitOf(service, 'api')).toBe(5);
    expect(told('RL_SOURCE_CHANGED')).toEqual(['RL_SOURCE_CHANGED: centre: api.limit 2 → 5']);
  });

  it('is told of where it names what nobody defines', async () => {
    const { source } = centre({ api: { limit: 2, ...FIXED }, nobody: { limit: 3 } });
    await start({ sources: [source] });
    expect(told('RL_UNKNOWN_POLICY')).toHaveLength(1);
  });

  it('closes the others where one can not be opened', async () => {
    const { source, closed } = centre({ api: { limit: 2, ...FIXED } });
    const broken: PolicySource = { name: 'broken', open: () => Promise.reject(new Error('no centre')) };
    await expect(start({ sources: [source, broken] })).rejects.toThrow('no centre');
    expect(closed).toEqual(['centre']);
  });
});

describe.each(ADAPTERS)('fileSource() on %s', (adapter) => {
  let directory: string;
  let file: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'distlimit-sources-'));
    file = join(directory, 'limits.yaml');
  });
  afterEach(async () => {
    await closeApps();
    rmSync(directory, { recursive: true, force: true });
  });

  const write = (limit: string) =>
    writeFileSync(file, `policies:\n  api: { limit: ${limit}, window: 1h, algorithm: fixed-window }\n`);
  const open = () => start({ sources: [fileSource(file, { pollIntervalMs: 20 })] }, adapter);

  it('is read again when it is written, while requests run; what was used stays used', async () => {
    write('2');
    const { service, call } = await open();
    expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
    write('4');
    await until(() => limitOf(service, 'api') === 4);
    expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
    await until(() => told('RL_SOURCE_CHANGED').length === 1);
    expect(told('RL_SOURCE_CHANGED')[0]).toContain('api.limit 2 → 4');
  });

  it('is refused where it is no file: nothing waits for who writes into a pipe', async () => {
    execFileSync('mkfifo', [file]);
    await expect(open()).rejects.toMatchObject({
      code: 'RL_INVALID_FILE',
      message: expect.stringContaining(
        'expected a regular file, received "a pipe, socket or device"',
      ) as string,
    });
  });

  it('is read again when it is replaced', async () => {
    write('2');
    const { service } = await open();
    for (const limit of [3, 4]) {
      writeFileSync(`${file}.new`, `{"policies":{"api":{"limit":${limit},"window":"1h"}}}`);
      renameSync(`${file}.new`, file);
      await until(() => limitOf(service, 'api') === limit);
    }
  });

  it('is read again when a link on its way is set anew, as with a config map', async () => {
    for (const limit of [2, 3]) {
      mkdirSync(join(directory, `v${limit}`));
      writeFileSync(
        join(directory, `v${limit}`, 'limits.yaml'),
        `policies: { api: { limit: ${limit}, window: 1h } }`,
      );
    }
    symlinkSync('v2', join(directory, '..data'));
    symlinkSync('..data/limits.yaml', file);
    const { service } = await open();
    expect(limitOf(service, 'api')).toBe(2);
    symlinkSync('v3', join(directory, '..new'));
    renameSync(join(directory, '..new'), join(directory, '..data'));
    await until(() => limitOf(service, 'api') === 3);
  });

  it('changes nothing while it is wrong or missing, and says where once', async () => {
    write('2');
    const { service } = await open();
    write('lots');
    await until(() => told('RL_SOURCE_REJECTED').length === 1);
    expect(told('RL_SOURCE_REJECTED')[0]).toContain(
      'limits.yaml:2:10: policies.api.limit: expected a whole number',
    );
    expect(limitOf(service, 'api')).toBe(2);
    unlinkSync(file);
    await until(() => told('RL_SOURCE_UNAVAILABLE').length === 1);
    expect(limitOf(service, 'api')).toBe(2);
    write('6');
    await until(() => limitOf(service, 'api') === 6);
    expect([told('RL_SOURCE_REJECTED'), told('RL_SOURCE_UNAVAILABLE')].map(({ length }) => length)).toEqual([
      1, 1,
    ]);
  });

  it('is needed at the start', async () => {
    await expect(open()).rejects.toMatchObject({ code: 'RL_INVALID_FILE' });
    write('lots');
    await expect(open()).rejects.toMatchObject({ code: 'RL_INVALID_LIMIT' });
  });
});

describe('redisSource()', () => {
  let server: RedisServer;
  let prefixes = 0;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => {
    await closeApps();
    await server.stop();
  });

  const shared = (options: Partial<RateLimitModuleOptions> = {}): RateLimitModuleOptions => ({
    redis: server.url,
    prefix: `sources-${prefixes++}`,
    policies: { api: { limit: 2, ...FIXED }, other: { limit: 2, ...FIXED } },
    sources: [redisSource()],
    ...options,
  });
  const subscriptions = () => server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');

  it.each<['memory' | 'redis' | 'hybrid']>([['memory'], ['redis'], ['hybrid']])(
    'takes a change to every instance, and to those that start later, with the %s driver',
    async (driver) => {
      const options = shared({ driver });
      const one = await start(options);
      const two = await start(options, 'fastify');
      expect(await statuses(() => one.call('/cats'), 3)).toEqual([200, 200, 429]);
      expect(await one.service.updatePolicy('api', { limit: 4 }, { scope: 'fleet' })).toMatchObject({
        limit: 4,
      });
      expect(limitOf(one.service, 'api')).toBe(4);
      await until(() => limitOf(two.service, 'api') === 4, 1_000);
      expect(await statuses(() => one.call('/cats'), 3)).toEqual([200, 200, 429]);
      const late = await start(options);
      expect(limitOf(late.service, 'api')).toBe(4);
      // A field that is `undefined` is the code's again.
      await late.service.updatePolicy('api', { limit: undefined }, { scope: 'fleet' });
      expect(limitOf(late.service, 'api')).toBe(2);
      await until(() => limitOf(one.service, 'api') === 2, 1_000);
    },
  );

  it('finds what a lost message told of', async () => {
    const options = shared();
    const one = await start(options);
    const two = await start(options);
    // Nobody listens any more: what is published now is lost.
    const name = `${options.prefix}:v1`;
    await until(async () => {
      await subscriptions();
      const [, listeners] = (await server.client.pubsub('NUMSUB', `${name}:policies:changed`)) as [
        string,
        number,
      ];
      if (listeners > 0) return false;
      await one.service.updatePolicy('api', { limit: 5 }, { scope: 'fleet' });
      return true;
    });
    await until(() => limitOf(two.service, 'api') === 5, 1_000);
  });

  it('loses nothing of changes that are made at once', async () => {
    const options = shared();
    const instances = [await start(options), await start(options)];
    const fields = ['block', 'maxDelay', 'limit', 'window', 'cost'] as const;
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const { service } = instances[i % 2]!;
        const field = fields[i % fields.length]!;
        const value = field === 'limit' || field === 'cost' ? 1 + i : 1_000 + i;
        return i % 4 === 3
          ? service.updatePolicy('other', { limit: 100 + i }, { scope: 'fleet' })
          : service.updatePolicy('api', { [field]: field === 'cost' ? 1 : value }, { scope: 'fleet' });
      }),
    );
    const late = await start(options);
    const version = await server.client.get(`${options.prefix}:v1:{policies}:version`);
    expect(version).toBe('40');
    const stored = JSON.parse(
      (await server.client.hget(`${options.prefix}:v1:{policies}`, 'api'))!,
    ) as object;
    expect(Object.keys(stored).toSorted()).toEqual([...fields].toSorted());
    for (const { service } of [...instances, late]) {
      await until(
        () => JSON.stringify(service.policies()) === JSON.stringify(late.service.policies()),
        2_000,
      );
    }
  });

  it('gives a Redis that comes back empty what it has lost', async () => {
    const own = await startRedis();
    try {
      const options = shared({ redis: own.url });
      const one = await start(options);
      await one.service.updatePolicy('api', { limit: 6 }, { scope: 'fleet' });
      await own.kill();
      await expect(one.service.updatePolicy('api', { limit: 7 }, { scope: 'fleet' })).rejects.toMatchObject({
        code: expect.stringMatching(/^RL_REDIS_/),
      });
      expect(limitOf(one.service, 'api')).toBe(6);
      await until(() => told('RL_SOURCE_UNAVAILABLE').length === 1);
      await own.restart();
      await until(async () => (await own.client.hget(`${options.prefix}:v1:{policies}`, 'api')) !== null);
      const late = await start(options);
      expect(limitOf(late.service, 'api')).toBe(6);
    } finally {
      await closeApps();
      await own.stop();
    }
  });

  it('starts without Redis, and takes over what is there when it comes', async () => {
    const own = await startRedis();
    try {
      const options = shared({ redis: own.url, hybrid: { expectedInstances: 1 } });
      const one = await start(options);
      await one.service.updatePolicy('api', { limit: 6 }, { scope: 'fleet' });
      const kept = [
        await own.client.hgetall(`${options.prefix}:v1:{policies}`),
        await own.client.get(`${options.prefix}:v1:{policies}:version`),
      ] as const;
      await closeApps();
      await own.kill();
      const early = await start(options);
      expect(limitOf(early.service, 'api')).toBe(2);
      await own.restart();
      await own.client.hset(`${options.prefix}:v1:{policies}`, kept[0]);
      await own.client.set(`${options.prefix}:v1:{policies}:version`, kept[1]!);
      await until(() => limitOf(early.service, 'api') === 6);
    } finally {
      await closeApps();
      await own.stop();
    }
  });

  it('refuses what can not be: functions, wrong numbers, a fleet without a source', async () => {
    const { service } = await start(shared());
    const fleet = { scope: 'fleet' } as const;
    await expect(service.updatePolicy('api', { skip: () => true }, fleet)).rejects.toMatchObject({
      code: 'RL_INVALID_OPTION',
    });
    await expect(service.updatePolicy('api', { limit: -1 }, fleet)).rejects.toMatchObject({
      code: 'RL_INVALID_LIMIT',
    });
    await expect(service.updatePolicy('nobody', { limit: 1 }, fleet)).rejects.toMatchObject({
      code: 'RL_UNKNOWN_POLICY',
    });
    await expect(service.updatePolicy('api', { limit: 3, cost: 4 }, fleet)).rejects.toMatchObject({
      code: 'RL_COST_OVER_CAPACITY',
    });
    expect(limitOf(service, 'api')).toBe(2);
    const { service: alone } = await start(shared({ sources: [] }));
    await expect(alone.updatePolicy('api', { limit: 3 }, fleet)).rejects.toMatchObject({
      code: 'RL_NO_FLEET_SOURCE',
    });
  });

  it('leaves out what somebody has stored wrongly, and says so', async () => {
    const options = shared();
    await server.client.hset(`${options.prefix}:v1:{policies}`, {
      api: '{"limit":"x"}',
      other: '{"limit":9}',
      third: 'no',
    });
    await server.client.set(`${options.prefix}:v1:{policies}:version`, 3);
    const { service } = await start(options);
    expect([limitOf(service, 'api'), limitOf(service, 'other')]).toEqual([2, 9]);
    expect(told('RL_SOURCE_REJECTED')).toHaveLength(2);
    await service.updatePolicy('api', { limit: 8 }, { scope: 'fleet' });
    expect(limitOf(service, 'api')).toBe(8);
  });

  it('works on a cluster', async () => {
    const cluster = await startCluster();
    try {
      const options = shared({ redis: { nodes: cluster.startupNodes } });
      const one = await start(options);
      const two = await start(options);
      await one.service.updatePolicy('api', { limit: 4 }, { scope: 'fleet' });
      await until(() => limitOf(two.service, 'api') === 4);
    } finally {
      await closeApps();
      await cluster.stop();
    }
  });

  it.each([
    ['no Redis at all', {}, undefined],
    ['a poll that is too slow', { pollIntervalMs: 1_001 }, 'redis'],
  ])('is refused with %s', async (_what, given, redis) => {
    const opening = async () =>
      start({
        sources: [redisSource(given)],
        ...(redis && { redis: server.url }),
        policies: { api: { limit: 1, ...FIXED } },
      });
    await expect(opening()).rejects.toMatchObject({ code: 'RL_INVALID_OPTION' });
  });
});
