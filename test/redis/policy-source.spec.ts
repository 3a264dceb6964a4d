import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { jest } from '@jest/globals';
import {
  RateLimiterService,
  RateLimitModule,
  redisSource,
  type RateLimitModuleOptions,
  type RedisSource,
} from 'nestjs-distlimit';
import {
  startRedis,
  startSentinels,
  until,
  type RedisServer,
  type SentinelSet,
} from '../support/redis-servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';

jest.setTimeout(60_000);

const FLEET = { scope: 'fleet' } as const;
const REDIS_FAILED = { code: expect.stringMatching(/^RL_REDIS_/) };

const applications: INestApplicationContext[] = [];
let logged: string[] = [];
let prefixes = 0;

beforeEach(() => {
  logged = [];
  for (const level of ['log', 'warn'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => void logged.push(String(line)));
  }
});
afterEach(async () => {
  await closeAll();
  jest.restoreAllMocks();
});

async function closeAll(): Promise<void> {
  for (const application of applications.splice(0)) await application.close();
}

const told = (code: string) => logged.filter((line) => line.includes(code)).length;

/** Instances of an application that share their policies. */
interface Fleet {
  start(): Promise<RateLimiterService>;
  at(redis: RedisSource): Fleet;
  readonly keys: { readonly policies: string; readonly version: string };
}

function fleetOn(redis: RedisSource, prefix = `source-${++prefixes}`): Fleet {
  const options: RateLimitModuleOptions = {
    redis,
    prefix,
    hybrid: { expectedInstances: 2 },
    policies: { api: { limit: 2, window: '1h', algorithm: 'fixed-window', key: 'global' } },
    sources: [redisSource()],
  };
  return {
    async start() {
      const application = await NestFactory.createApplicationContext(RateLimitModule.forRoot(options), {
        logger: false,
      });
      applications.push(application);
      return application.get(RateLimiterService);
    },
    /** Further instances, with another way to Redis. */
    at: (other: RedisSource) => fleetOn(other, prefix),
    keys: {
      policies: `${options.prefix}:v1:{policies}`,
      version: `${options.prefix}:v1:{policies}:version`,
    },
  };
}

const limitOf = (service: RateLimiterService) => service.policies().find(({ name }) => name === 'api')?.limit;
const setLimit = (service: RateLimiterService, limit: number) =>
  service.updatePolicy('api', { limit }, FLEET);
/** As soon as Redis can be asked again. */
const setLimitSoon = (service: RateLimiterService, limit: number) =>
  until(() =>
    setLimit(service, limit).then(
      () => true,
      () => false,
    ),
  );
const haveLimit = (limit: number, ...services: RateLimiterService[]) =>
  until(() => services.every((service) => limitOf(service) === limit));

describe('a Redis that is frozen', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(() => server.resume());
  afterAll(() => server.stop());

  it('leaves the fleet its last policies, and brings what changes afterwards', async () => {
    const fleet = fleetOn(server.url);
    const [one, two] = [await fleet.start(), await fleet.start()];
    await setLimit(one, 100);
    await haveLimit(100, one, two);
    server.freeze();
    await sleep(3_000);
    expect([limitOf(one), limitOf(two)]).toEqual([100, 100]);
    // The application goes on, by the fleet's policy and not by the code's.
    for (const service of [one, two]) {
      expect(await service.consume('api', 'global')).toMatchObject({ allowed: true, limit: 100 });
    }
    // Each instance says once that Redis is away.
    expect(told('RL_SOURCE_UNAVAILABLE')).toBe(2);
    server.resume();
    await setLimitSoon(two, 300);
    await haveLimit(300, one, two);
    await setLimit(one, 400);
    await haveLimit(400, one, two);
    expect([told('RL_SOURCE_UNAVAILABLE'), told('RL_SOURCE_REJECTED')]).toEqual([2, 0]);
  });

  it('fails an update, which holds everywhere or nowhere', async () => {
    const fleet = fleetOn(server.url);
    const [one, two] = [await fleet.start(), await fleet.start()];
    await setLimit(one, 100);
    await haveLimit(100, one, two);
    server.freeze();
    await expect(setLimit(one, 200)).rejects.toMatchObject(REDIS_FAILED);
    expect([limitOf(one), limitOf(two)]).toEqual([100, 100]);
    server.resume();
    // The command may have been on its way: then it is carried out, and all see that.
    await until(async () => {
      const stored = JSON.parse((await server.client.hget(fleet.keys.policies, 'api'))!) as { limit: number };
      return [one, two].every((service) => limitOf(service) === stored.limit);
    });
    expect([100, 200]).toContain(limitOf(one));
    await setLimitSoon(two, 300);
    await haveLimit(300, one, two);
  });

  it('keeps no instance from starting, which takes over what there is when Redis goes on', async () => {
    const fleet = fleetOn(server.url);
    const one = await fleet.start();
    await setLimit(one, 100);
    server.freeze();
    const late = await fleet.start();
    expect(limitOf(late)).toBe(2);
    await expect(setLimit(late, 5)).rejects.toMatchObject(REDIS_FAILED);
    server.resume();
    await haveLimit(100, one, late);
    await setLimitSoon(late, 300);
    await haveLimit(300, one, late);
  });
});

it('takes over what another server has under the version that was known', async () => {
  const server = await startRedis();
  const proxy = await TcpProxy.open(server.port);
  try {
    const fleet = fleetOn(proxy.url);
    const one = await fleet.start();
    await setLimit(one, 100);
    proxy.silence();
    await until(() => told('RL_SOURCE_UNAVAILABLE') === 1);
    // As a failover leaves it: the change was lost, and somebody who did not know of it has made the next one.
    await server.client.hset(fleet.keys.policies, 'api', '{"limit":200}');
    proxy.heal();
    await haveLimit(200, one);
    await setLimit(one, 300);
    expect(limitOf(one)).toBe(300);
  } finally {
    await closeAll();
    await proxy.close();
    await server.stop();
  }
});

it('keeps what was known and what somebody has changed in a Redis that came back empty', async () => {
  const server = await startRedis();
  const proxy = await TcpProxy.open(server.port);
  try {
    const fleet = fleetOn(proxy.url);
    const one = await fleet.start();
    await one.updatePolicy('api', { limit: 100, block: '1m' }, FLEET);
    proxy.silence();
    await until(() => told('RL_SOURCE_UNAVAILABLE') === 1);
    await server.client.flushall();
    // Somebody who knows of nothing is the first to change a policy: the same version as before.
    const other = await fleet.at(server.url).start();
    await setLimit(other, 200);
    expect(await server.client.get(fleet.keys.version)).toBe('1');
    proxy.heal();
    const blockOf = (service: RateLimiterService) => service.policies()[0]!.blockMs;
    await until(() =>
      [one, other].every((service) => limitOf(service) === 200 && blockOf(service) === 60_000),
    );
    await setLimit(one, 300);
    await haveLimit(300, one, other);
  } finally {
    await closeAll();
    await proxy.close();
    await server.stop();
  }
});

describe('keys that hold something else', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  it.each(['policies', 'version'] as const)(
    'in place of the %s: the start goes on, and says so',
    async (key) => {
      const fleet = fleetOn(server.url);
      await server.client.rpush(fleet.keys[key], 'a list');
      const one = await fleet.start();
      expect(limitOf(one)).toBe(2);
      expect(told('RL_SOURCE_UNAVAILABLE')).toBe(1);
      await server.client.del(fleet.keys[key]);
      await setLimitSoon(one, 100);
      const late = await fleet.start();
      expect(limitOf(late)).toBe(100);
    },
  );

  it.each(['1e300', '9007199254740992', 'x'])('in place of the version: %s', async (version) => {
    const fleet = fleetOn(server.url);
    const one = await fleet.start();
    await setLimit(one, 100);
    await server.client.set(fleet.keys.version, version);
    const late = await fleet.start();
    await setLimit(late, 200);
    await haveLimit(200, one, late);
    await setLimit(one, 300);
    await haveLimit(300, one, late);
  });

  it.each(['bad\nname', ''])('in place of a policy’s name: %j is left out', async (name) => {
    const fleet = fleetOn(server.url);
    const one = await fleet.start();
    await setLimit(one, 100);
    await server.client.hset(fleet.keys.policies, name, '{"limit":1,"window":"1m"}');
    await server.client.incr(fleet.keys.version);
    const late = await fleet.start();
    expect(limitOf(late)).toBe(100);
    await until(() => told('RL_SOURCE_REJECTED') === 2);
    for (const service of [one, late])
      expect(service.policies().map((policy) => policy.name)).toEqual(['api']);
  });
});

describe('Sentinel', () => {
  let set: SentinelSet;
  beforeEach(async () => {
    set = await startSentinels();
  });
  afterEach(async () => {
    await closeAll();
    await set.stop();
  });

  it('makes another server the master: policies survive, and later updates arrive', async () => {
    const fleet = fleetOn({ sentinels: set.sentinels, name: set.name });
    const [one, two] = [await fleet.start(), await fleet.start()];
    await setLimit(one, 100);
    await haveLimit(100, one, two);
    await set.failOver();
    await setLimitSoon(two, 200);
    await haveLimit(200, one, two);
    await setLimitSoon(one, 300);
    await haveLimit(300, one, two);
    const late = await fleet.start();
    expect(limitOf(late)).toBe(300);
  });

  it('replaces a master that was killed with an update that no replica has: whoever knows it gives it back', async () => {
    const fleet = fleetOn({ sentinels: set.sentinels, name: set.name });
    const [one, two] = [await fleet.start(), await fleet.start()];
    const [master, ...replicas] = set.servers;
    await setLimit(one, 100);
    await haveLimit(100, one, two);
    for (const { client } of replicas)
      await until(async () => (await client.get(fleet.keys.version)) === '1');
    // Replicas that are frozen and cut off get nothing more, not even when they go on.
    for (const replica of replicas) replica.freeze();
    await master!.client.call('CLIENT', 'KILL', 'TYPE', 'replica');
    await setLimit(one, 200);
    await haveLimit(200, one, two);
    await master!.kill();
    for (const replica of replicas) replica.resume();
    for (const { client } of replicas) expect(await client.get(fleet.keys.version)).toBe('1');
    await until(async () => (await replicas[0]!.client.get(fleet.keys.version)) === '2');
    expect([limitOf(one), limitOf(two)]).toEqual([200, 200]);
    const late = await fleet.start();
    expect(limitOf(late)).toBe(200);
    await setLimitSoon(late, 300);
    await haveLimit(300, one, two, late);
  });
});
