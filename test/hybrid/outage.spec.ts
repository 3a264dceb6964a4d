import { readFileSync } from 'node:fs';
import { jest } from '@jest/globals';
import { HybridDriver, type BreakerChangeEvent, type HybridDriverOptions } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { clusterSlot } from '../../lib/drivers/redis/cluster-slot.js';
import { startCluster, startRedis, until, type RedisServer } from '../support/redis-servers.js';
import { chargeOf } from '../unit/drivers/support.js';

jest.setTimeout(30_000);

let server: RedisServer;
const opened: HybridDriver[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((driver) => driver.close()));
});
afterAll(() => server.stop());

/** A driver whose time, and whose timers, the test moves. */
async function open(options: Partial<HybridDriverOptions> = {}) {
  const clock = new ManualClock();
  const changes: BreakerChangeEvent[] = [];
  const reconciled = { reconciled: 0, dropped: 0 };
  const prefix = `outage-${Math.random().toString(36).slice(2)}`;
  const driver = new HybridDriver({
    redis: server.url,
    prefix,
    clock,
    onBreakerChange: (change) => changes.push(change),
    onReconcile: (told) => {
      reconciled.reconciled += told.reconciled;
      reconciled.dropped += told.dropped;
    },
    ...options,
  });
  opened.push(driver);
  await driver.started;
  return { driver, clock, prefix, changes, reconciled, states: () => changes.map(({ current }) => current) };
}

async function take(driver: HybridDriver, charge: ReturnType<typeof chargeOf>, times: number) {
  const decisions = [];
  for (let i = 0; i < times; i++) decisions.push(...(await driver.decide([charge])));
  return decisions;
}

const allowed = (decisions: readonly { allowed: boolean }[]) => decisions.filter((d) => d.allowed).length;
const hourly = { limit: 10, window: '1h', algorithm: 'fixed-window' } as const;

describe('start-up', () => {
  it('is waited for by what is to be changed in Redis', async () => {
    const prefix = `start-up-${Math.random().toString(36).slice(2)}`;
    const early = new HybridDriver({ redis: server.url, prefix });
    opened.push(early);
    await early.block(chargeOf('ann', hourly), 60_000);
    const other = await open({ prefix });
    expect((await other.driver.peek(chargeOf('ann', hourly))).allowed).toBe(false);
  });
});

describe('an outage', () => {
  it('goes on from what Redis told, opens once, and is told with its reason', async () => {
    const { driver, changes } = await open();
    const charge = chargeOf('ann', hourly);
    const before = await take(driver, charge, 4);
    expect(before.at(-1)).toMatchObject({ allowed: true, remaining: 6, servedBy: 'redis' });
    await server.kill();
    const during = await take(driver, charge, 10);
    expect(during.every(({ servedBy }) => servedBy === 'fallback')).toBe(true);
    expect(allowed(during)).toBe(6);
    expect(changes).toMatchObject([{ driver: 'hybrid', previous: 'closed', current: 'open' }]);
    // What is met first is a race: that there is no connection, or what became of a command on its way.
    expect(changes[0]!.reason).toMatch(
      /RL_REDIS_NOT_READY|Connection is closed|Stream isn't writeable|ECONNRE/,
    );
    expect(driver.status()).toMatchObject({ driver: 'hybrid', breaker: 'open', fleetSize: 1 });
    await server.restart();
  });

  it('is over after one probe: Redis is reminded of what it knew, and charged with the rest', async () => {
    const { driver, clock, prefix, states, reconciled } = await open({ coolOffMs: 5_000 });
    const charge = chargeOf('ann', hourly);
    const bob = chargeOf('bob', hourly);
    await take(driver, charge, 4);
    await take(driver, bob, 3);
    await server.kill();
    expect(allowed(await take(driver, charge, 2))).toBe(2);
    expect(driver.status().lastError).toEqual(expect.any(String));
    await server.restart();
    clock.advance(4_999);
    expect(states()).toEqual(['open']);
    // The connection comes back in real time: a probe may still be too early for it.
    await until(() => {
      clock.advance(100);
      return states().at(-1) === 'closed';
    });
    expect(states().slice(-3)).toEqual(['half-open', 'recovering', 'closed']);
    expect(states().slice(0, -3).join()).toMatch(/^open(,half-open,open)*$/);
    expect(reconciled).toEqual({ reconciled: 2, dropped: 0 });
    expect(driver.status()).toMatchObject({ breaker: 'closed', lastError: null });
    const other = await open({ prefix, clock });
    expect((await other.driver.peek(charge)).remaining).toBe(4);
    expect((await other.driver.peek(bob)).remaining).toBe(7);
  });
});

it.each<[string, Partial<HybridDriverOptions>, object]>([
  ['its window has ended', {}, { reconciled: 0, dropped: 3 }],
  ['each instance admits in full', { fallback: 'full' }, { reconciled: 0, dropped: 3 }],
])('tells what it let through and does not settle: %s', async (_why, options, expected) => {
  const { driver, clock, states, reconciled } = await open({ coolOffMs: 5_000, ...options });
  await server.kill();
  const charge = chargeOf('ann', { limit: 10, window: '4s', algorithm: 'fixed-window' });
  expect(allowed(await take(driver, charge, 3))).toBe(3);
  await server.restart();
  await until(() => {
    clock.advance(100);
    return states().at(-1) === 'closed';
  });
  expect(reconciled).toEqual(expected);
});

it('does not tell others that it is back while one master of a cluster is away', async () => {
  const cluster = await startCluster();
  try {
    const redis = { nodes: cluster.startupNodes };
    const { driver, clock, prefix, states } = await open({ redis, coolOffMs: 5_000 });
    const fleet = `${prefix}:v1:fleet:${prefix}`;
    const holder = Math.floor(clusterSlot(fleet) / Math.ceil(16_384 / 3));
    const instances = () =>
      cluster.nodes[holder]!.client.call('ZRANGE', fleet, '0', '-1', 'WITHSCORES') as Promise<unknown[]>;
    const before = await instances();
    expect(before).not.toEqual([]);
    await cluster.nodes[(holder + 1) % 3]!.kill();
    let asked = 0;
    await until(async () => {
      await driver.decide([chargeOf(`subject ${asked++}`, hourly)]);
      return states().includes('open');
    });
    const failedProbes = () => states().join().split('half-open,open').length - 1;
    await until(() => {
      if (states().at(-1) === 'open') clock.advance(6_000);
      return failedProbes() >= 2;
    });
    expect(await instances()).toEqual(before);
    await driver.close();
  } finally {
    await cluster.stop();
  }
});

it('needs no more rights than the guides say', async () => {
  const guide = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8');
  const rights = `${guide('redis')}${guide('hybrid')}`.match(/\+[a-z]+(\|load)?(?= |$|`)/gm)!;
  await server.client.acl('SETUSER', 'limits', 'on', '>secret', '~shop:*', '&shop:*', ...rights);
  const redis = server.url.replace('//', '//limits:secret@');
  const { driver, states } = await open({ redis, prefix: 'shop' });
  const [decision] = await driver.decide([chargeOf('ann', hourly)]);
  expect(decision).toMatchObject({ allowed: true, servedBy: 'redis' });
  expect(states()).toEqual([]);
  expect(driver.status()).toMatchObject({ breaker: 'closed', lastError: null });
  const instances = () => server.client.zcard('shop:v1:fleet:shop');
  expect(await instances()).toBe(1);
  await driver.close();
  expect(await instances()).toBe(0);
});
