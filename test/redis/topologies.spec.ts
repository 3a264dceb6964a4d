import { limiterBuilder, RedisDriver } from 'nestjs-distlimit';
import { Cluster } from 'ioredis';
import { chargeOf } from '../unit/drivers/support.js';
import {
  startCluster,
  startSentinels,
  until,
  type RedisCluster,
  type SentinelSet,
} from '../support/redis-servers.js';

describe('a cluster', () => {
  let cluster: RedisCluster;
  let driver: RedisDriver;

  beforeAll(async () => {
    cluster = await startCluster();
    driver = new RedisDriver({ redis: { nodes: cluster.startupNodes } });
    await driver.started;
  }, 60_000);
  afterAll(async () => {
    await driver.close();
    await cluster.stop();
  });

  const subjects = (from: string) => Array.from({ length: 300 }, (_, i) => `${from}:${i}`);
  const onMasters = <T>(work: (node: RedisCluster['nodes'][number]) => Promise<T>) =>
    Promise.all(cluster.nodes.slice(0, 3).map(work));

  it('decides on every node, with one command a slot', async () => {
    const decisions = await Promise.all(
      subjects('spread').flatMap((subject) => {
        const charge = chargeOf(subject, { limit: 2, algorithm: 'fixed-window' });
        return [driver.decide([charge]), driver.decide([charge]), driver.decide([charge])];
      }),
    );
    expect(decisions.flat().map(({ allowed }) => allowed)).toEqual(
      subjects('spread').flatMap(() => [true, true, false]),
    );
    const keys = await onMasters(({ client }) => client.dbsize());
    expect(keys.every((count) => count > 50)).toBe(true);
  });

  it('sends what one turn asks of a node in one write', async () => {
    const readsOf = async ({ client }: RedisCluster['nodes'][number]) =>
      Number(/total_reads_processed:(\d+)/.exec(await client.info('stats'))?.[1]);
    const before = await onMasters(readsOf);
    await Promise.all(subjects('together').map((subject) => driver.decide([chargeOf(subject)])));
    const after = await onMasters(readsOf);
    // About a hundred commands each; the largest writes are read in parts, and others ask the node too.
    const reads = after.map((count, node) => count - before[node]!);
    expect(Math.max(...reads)).toBeLessThan(20);
  });

  it('sends the script to a node that has lost it', async () => {
    await onMasters(({ client }) => client.script('FLUSH'));
    const decisions = await Promise.all(
      subjects('flushed').map((subject) => driver.decide([chargeOf(subject)])),
    );
    expect(decisions.flat().every(({ allowed }) => allowed)).toBe(true);
  });

  it('takes all or nothing of a group across slots', async () => {
    const options = { limit: 10, window: '1h', algorithm: 'fixed-window' } as const;
    const group = subjects('group')
      .slice(0, 10)
      .map((subject) => chargeOf(subject, options));
    expect((await driver.decide(group)).map(({ remaining }) => remaining)).toEqual(Array(10).fill(9));
    const full = chargeOf('group:full', { ...options, limit: 1 }, 'full');
    await driver.decide([full]);
    const denied = await driver.decide([...group, full]);
    expect(denied.map(({ allowed }) => allowed)).toEqual([...Array(10).fill(true), false]);
    expect(denied.map(({ remaining }) => remaining)).toEqual([...Array(10).fill(9), 0]);
    expect(denied.every(({ receipt }) => receipt === undefined)).toBe(true);
    const left = await Promise.all(group.map((charge) => driver.peek(charge)));
    expect(left.map(({ remaining }) => remaining)).toEqual(Array(10).fill(9));
  });

  it('keeps all policies of a subject on one node, decided in one step', async () => {
    const group = Array.from({ length: 5 }, (_, i) =>
      chargeOf('one', { algorithm: 'fixed-window' }, `policy ${i}`),
    );
    await driver.decide(group);
    const places = await onMasters(({ client }) => client.keys('*:{one}:*'));
    expect(places.map((keys) => keys.length).toSorted((a, b) => a - b)).toEqual([0, 0, 5]);
  });

  it('works with a client of the application, which it leaves alone', async () => {
    const own = new Cluster(cluster.startupNodes);
    const limiter = limiterBuilder(own).driver('redis').prefix('own').limit(1).build();
    try {
      expect(await limiter.tryAcquire('a')).toBe(true);
      expect(await limiter.tryAcquire('a')).toBe(false);
      await limiter.close();
      expect(await own.get('nothing')).toBeNull();
    } finally {
      await limiter.close();
      own.disconnect();
    }
  });

  it('follows a slot that moves', async () => {
    const charge = chargeOf('moved', { limit: 5, algorithm: 'fixed-window', window: '1h' });
    await driver.decide([charge]);
    await cluster.moveSlot('moved', () =>
      // While its keys are on their way a subject can't be decided, and nothing is counted.
      expect(driver.decide([charge])).rejects.toThrow('Too many Cluster redirections'),
    );
    expect((await driver.decide([charge]))[0]).toMatchObject({ allowed: true, remaining: 3 });
  });

  it('goes on after a master was killed', async () => {
    await cluster.failOverSoon();
    await cluster.nodes[0]!.kill();
    await until(async () => {
      const settled = await Promise.allSettled(
        subjects('after').map((subject) => driver.decide([chargeOf(subject)])),
      );
      return settled.every(({ status }) => status === 'fulfilled');
    });
  }, 60_000);
});

describe('Sentinel', () => {
  let set: SentinelSet;

  beforeAll(async () => {
    set = await startSentinels();
  }, 60_000);
  afterAll(() => set.stop());

  it('is asked for the master, and again when another server has become it', async () => {
    const limiter = limiterBuilder({ sentinels: set.sentinels, name: set.name })
      .driver('redis')
      .limit(1_000)
      .window('1h')
      .build();
    try {
      expect(await limiter.consume('a')).toMatchObject({ allowed: true, servedBy: 'redis' });
      expect(await set.servers[0]!.client.dbsize()).toBe(1);
      await set.failOver();
      await until(() =>
        limiter.consume('a').then(
          () => true,
          () => false,
        ),
      );
      expect(limiter.status()).toMatchObject({ driver: 'redis' });
    } finally {
      await limiter.close();
    }
  }, 60_000);
});
