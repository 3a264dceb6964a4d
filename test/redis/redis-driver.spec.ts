import { limiterBuilder, RedisDriver, type Limiter } from 'nestjs-distlimit';
import { Redis } from 'ioredis';
import type { Algorithm } from '../../lib/core/algorithm.js';
import { chargeOf, heldClock } from '../unit/drivers/support.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';
import { RateLimiter } from '../../lib/core/rate-limiter.js';
import { engineOf } from '../support/engine.js';

let server: RedisServer;
const opened: { close(): Promise<void> }[] = [];
let prefixes = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});
afterAll(() => server.stop());

function closing<T extends { close(): Promise<void> }>(it: T): T {
  opened.push(it);
  return it;
}

function limiterOf(configure: (builder: ReturnType<typeof limiterBuilder>) => unknown): Limiter {
  const builder = limiterBuilder(server.url).driver('redis').name('p').prefix(`t${++prefixes}`);
  configure(builder);
  return closing(builder.build());
}

function driverOf(options: Partial<ConstructorParameters<typeof RedisDriver>[0]> = {}): RedisDriver {
  return closing(new RedisDriver({ redis: server.url, prefix: `t${++prefixes}`, ...options }));
}

describe('keys', () => {
  it('are a readable hash that lives exactly as long as the counter counts', async () => {
    const limiter = limiterOf((b) => b.limit(5).window('10s').burst(5).algorithm('token-bucket'));
    await limiter.consume('ip:1', { cost: 2 });
    const key = `t${prefixes}:v1:{ip:1}:p:token-bucket`;
    const state = await server.client.hgetall(key);
    expect(state).toMatchObject({ used: '20000', window: '10000' });
    expect(await server.client.pexpiretime(key)).toBe(Number(state.at) + 10_000);
  });

  it('are a list for the log', async () => {
    const limiter = limiterOf((b) => b.limit(5).window('10s').algorithm('sliding-window-log'));
    await limiter.consume('ip:1', { cost: 2 });
    const key = `t${prefixes}:v1:{ip:1}:p:sliding-window-log`;
    const [total, expiry, , time, cost] = await server.client.lrange(key, 0, -1);
    expect([total, cost]).toEqual(['2', '2']);
    expect(Number(expiry)).toBe(Number(time) + 10_000);
    expect(await server.client.pexpiretime(key)).toBe(Number(expiry));
  });

  it('get a time to live again where somebody took it away', async () => {
    for (const algorithm of ['token-bucket', 'sliding-window-log'] as const) {
      const limiter = limiterOf((b) => b.limit(2).window('10s').algorithm(algorithm));
      await limiter.consume('a');
      const key = `t${prefixes}:v1:{a}:p:${algorithm}`;
      await server.client.persist(key);
      await limiter.consume('a');
      expect(await server.client.pttl(key)).toBeGreaterThan(0);
      await server.client.persist(key);
      expect((await limiter.consume('a')).allowed).toBe(false);
      expect(await server.client.pttl(key)).toBeGreaterThan(0);
    }
  });

  it('are not made by a denial, a look, or a refund of nothing', async () => {
    const limiter = limiterOf((b) => b.limit(2).window('10s'));
    await limiter.consume('a', { cost: 3 });
    await limiter.peek('a');
    await limiter.refund('a', 1);
    expect(await server.client.keys(`t${prefixes}:*`)).toEqual([]);
  });

  it('live at least a millisecond', async () => {
    const limiter = limiterOf((b) => b.limit(3).window('1ms').burst(1).algorithm('token-bucket'));
    expect((await limiter.consume('a')).allowed).toBe(true);
  });

  it('never hold a raw identifier with hashKeys', async () => {
    const prefix = `t${++prefixes}`;
    const engine = engineOf(
      { redis: server.url, driver: 'redis', prefix, hashKeys: 'a secret of some length' },
      { p: { limit: 2, window: '10s' } },
    );
    const limiter = closing(new RateLimiter(engine));
    await limiter.consume('p', 'user:ann@example.com');
    await limiter.block('p', 'user:ann@example.com', '10s');
    const keys = await server.client.keys(`${prefix}:*`);
    expect(keys).toHaveLength(2);
    expect(keys.join()).not.toContain('ann');
  });
});

const long = 'a'.repeat(10_000);

describe('hostile subjects', () => {
  it.each(['}:p:x{', '{x}', 'a:b', '%7b', '\u0000\r\n', 'ünïcode', '\ud800', '\ud801', long, '__proto__'])(
    'have a bucket of their own: %#',
    async (subject) => {
      const limiter = limiterOf((b) => b.limit(1).window('10s'));
      expect(await limiter.tryAcquire(subject)).toBe(true);
      expect(await limiter.tryAcquire(subject)).toBe(false);
      expect(await limiter.tryAcquire(`${subject}x`)).toBe(true);
      for (const key of await server.client.keys(`t${prefixes}:*`)) {
        expect(key).toMatch(/^t\d+:v1:\{[^{}\u0000-\u001f]+\}:p:sliding-window-counter$/);
      }
    },
  );
});

describe('one command a turn', () => {
  async function commandsDuring(work: () => Promise<unknown>): Promise<number> {
    await server.client.config('RESETSTAT');
    await work();
    const stats = await server.client.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  }

  it('holds up to 128 checks, of any policies and verbs', async () => {
    const limiter = limiterOf((b) => b.limit(1_000).window('10s'));
    await limiter.consume('a');
    expect(
      await commandsDuring(() =>
        Promise.all([
          ...Array.from({ length: 125 }, (_, i) => limiter.consume(`s${i % 50}`)),
          limiter.peek('a'),
          limiter.refund('a', 1),
          limiter.reset('b'),
        ]),
      ),
    ).toBe(1);
    expect(
      await commandsDuring(() => Promise.all(Array.from({ length: 500 }, () => limiter.consume('a')))),
    ).toBe(4);
  });

  it('does not split a group', async () => {
    const driver = driverOf();
    await driver.started;
    const group = Array.from({ length: 100 }, (_, i) => chargeOf(`s${i}`));
    expect(await commandsDuring(() => Promise.all([driver.decide(group), driver.decide(group)]))).toBe(2);
    const many = Array.from({ length: 3_000 }, (_, i) => chargeOf(`m${i}`));
    const decisions = await driver.decide(many);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
  });

  it('reads and writes a hot key once', async () => {
    const limiter = limiterOf((b) => b.limit(5).window('10s'));
    await limiter.peek('a');
    await server.client.config('RESETSTAT');
    const verdicts = await Promise.all(Array.from({ length: 100 }, () => limiter.consume('a')));
    expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(5);
    expect(verdicts.slice(0, 6).map(({ remaining }) => remaining)).toEqual([4, 3, 2, 1, 0, 0]);
    const stats = await server.client.info('commandstats');
    expect(stats).toMatch(/cmdstat_hset:calls=1,/);
    expect(stats).toMatch(/cmdstat_hmget:calls=1,/);
  });
});

describe('a script that Redis has forgotten', () => {
  it('is sent again after SCRIPT FLUSH', async () => {
    const limiter = limiterOf((b) => b.limit(5).window('10s'));
    await limiter.consume('a');
    await server.client.script('FLUSH');
    expect(await limiter.consume('a')).toMatchObject({ allowed: true, remaining: 3 });
  });

  it('is sent again after a restart: calls wait for the connection, and only one that it broke under may fail', async () => {
    const limiter = limiterOf((b) => b.limit(5).window('10s'));
    await limiter.consume('a');
    await server.kill();
    await server.restart();
    await limiter.consume('a').catch(() => undefined);
    expect(await limiter.consume('b')).toMatchObject({ allowed: true, remaining: 4 });
  });
});

describe('a key that holds something else', () => {
  it.each(['token-bucket', 'sliding-window-log'] as const)(
    'fails its own calls alone: %s',
    async (algorithm) => {
      const limiter = limiterOf((b) => b.limit(5).window('10s').burst(5).algorithm(algorithm));
      const key = `t${prefixes}:v1:{bad}:p:${algorithm}`;
      await server.client.set(key, 'mine');
      const [bad, good, peek] = await Promise.allSettled([
        limiter.consume('bad'),
        limiter.consume('good'),
        limiter.peek('bad'),
      ]);
      expect(good).toMatchObject({ status: 'fulfilled', value: { allowed: true, remaining: 4 } });
      expect(bad).toMatchObject({
        status: 'rejected',
        reason: { code: 'RL_DRIVER_UNAVAILABLE', cause: { code: 'RL_BROKEN_KEY' } },
      });
      expect(peek.status).toBe('rejected');
      expect(await server.client.get(key)).toBe('mine');
      await limiter.reset('bad');
      expect((await limiter.consume('bad')).allowed).toBe(true);
    },
  );

  it('leaves the rest of its group uncharged', async () => {
    const driver = driverOf();
    const good = chargeOf('good', { limit: 5, algorithm: 'fixed-window' }, 'one');
    const bad = chargeOf('bad', { limit: 5, algorithm: 'fixed-window' }, 'two');
    await server.client.hset(`t${prefixes}:v1:{bad}:two:fixed-window`, 'start', 'soon');
    await expect(driver.decide([good, bad])).rejects.toMatchObject({ code: 'RL_BROKEN_KEY' });
    expect((await driver.peek(good)).remaining).toBe(5);
  });
});

describe('a counter that others have filled', () => {
  const counterOf = (algorithm: 'token-bucket' | 'sliding-window-log') =>
    chargeOf('bad', { limit: 60, window: 100_000, algorithm });

  /** What becomes of calls before and after it in the same command. */
  async function around(driver: RedisDriver, work: () => Promise<unknown>) {
    const good = chargeOf('good', { limit: 5 });
    const settled = await Promise.allSettled([driver.decide([good]), work(), driver.decide([good])]);
    const left = [settled[0], settled[2]].map((it) => it.status === 'fulfilled' && it.value);
    expect(left).toMatchObject([[{ remaining: 4 }], [{ remaining: 3 }]]);
    return settled[1];
  }

  it.each(['inf', '1e300', 'nan'])('with %s fails nobody else', async (used) => {
    const driver = driverOf();
    const key = `t${prefixes}:v1:{bad}:p:token-bucket`;
    await server.client.hset(key, { used, at: Date.now(), window: 100_000 });
    const bad = counterOf('token-bucket');
    expect(await around(driver, () => driver.decide([bad]))).toMatchObject({ status: 'fulfilled' });
    await driver.reset(bad);
    expect((await driver.decide([bad]))[0]!.allowed).toBe(true);
  });

  const now = Date.now();
  const entries = Array.from({ length: 50 }, (_, i) => [now - 90_000 + i, i === 40 ? 'much' : 1]).flat();
  const LOGS: [string, (string | number)[]][] = [
    ['an entry far back that is no number', [50, now + 90_000, 1, ...entries]],
    ['half an entry', [1, now + 90_000, 1, now, 1, now]],
    ['a total that its entries are not', [70, now + 90_000, 1, now, 1]],
  ];

  it.each(LOGS)('with %s fails its own calls only', async (_title, values) => {
    const driver = driverOf();
    await server.client.rpush(`t${prefixes}:v1:{bad}:p:sliding-window-log`, ...values);
    const bad = { ...counterOf('sliding-window-log'), cost: 20 };
    const other = chargeOf('other', { limit: 5 }, 'two');
    const broken = { status: 'rejected', reason: { code: 'RL_BROKEN_KEY' } };
    expect(await around(driver, () => driver.decide([other, bad, other]))).toMatchObject(broken);
    expect((await driver.peek(other)).remaining).toBe(5);
    await driver.reset(bad);
    expect((await driver.decide([bad]))[0]!.allowed).toBe(true);
  });

  it('is told from a script of somebody that is wrong', async () => {
    const { policy } = counterOf('sliding-window-log');
    const lua = 'local function step() return nil + 1 end return step, step';
    const arithmetic = { ...policy.arithmetic, name: 'wrong', lua };
    const wrong = { ...policy, algorithm: 'wrong', arithmetic };
    const driver = driverOf();
    await expect(driver.decide([{ policy: wrong, quota: wrong, subject: 'a', cost: 1 }])).rejects.toThrow(
      /arithmetic/,
    );
  });
});

it('keeps registers of any name, and times that are not whole', async () => {
  const { policy } = chargeOf('a', { limit: 5, window: 60_000 });
  const registers = ['since', 'expiry', '_since'];
  const lua = `
local function step(r, quota, now, cost)
  local allowed = r[1] + cost <= quota.limit
  if allowed then r[1], r[2], r[3] = r[1] + cost, r[2] + 0.5, r[3] + 2 end
  return allowed, quota.limit - r[1], 0, r[2] + r[3], 0, now + 0.25, 0
end
return step, function() end`;
  const arithmetic = { ...policy.arithmetic, name: 'own', shape: 'registers', registers, lua } as Algorithm;
  const own = { ...policy, algorithm: 'own', arithmetic };
  const charge = { policy: own, quota: own, subject: 'a', cost: 1 };
  for (const options of [{}, { clock: heldClock() }]) {
    const driver = driverOf(options);
    await driver.decide([charge]);
    expect((await driver.decide([charge]))[0]).toMatchObject({
      allowed: true,
      remaining: 3,
      resetAfterMs: 5,
    });
  }
});

it('answers what was asked before it was closed', async () => {
  const driver = driverOf();
  await driver.started;
  const charge = chargeOf('a');
  const asked = [driver.decide([charge]), driver.peek(charge), driver.reset(charge)];
  const closed = driver.close();
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(asked.map(() => 'fulfilled'));
  await closed;
});

describe('a client of the application', () => {
  it('is duplicated, and left alone', async () => {
    const own = new Redis(server.url, { keyPrefix: 'app:' });
    try {
      await own.ping();
      const limiter = limiterBuilder(own)
        .driver('redis')
        .prefix('p1')
        .name('p')
        .limit(5)
        .window('10s')
        .build();
      await limiter.consume('a');
      expect(await server.client.exists('app:p1:v1:{a}:p:sliding-window-counter')).toBe(1);
      await limiter.close();
      expect(await own.ping()).toBe('PONG');
    } finally {
      own.disconnect();
    }
  });

  it('leaves no connection of the library behind', async () => {
    const clients = async () =>
      Number(/connected_clients:(\d+)/.exec(await server.client.info('clients'))![1]);
    await until(async () => (await clients()) === 1);
    const limiter = limiterOf((b) => b.limit(5));
    await limiter.consume('a');
    expect(await clients()).toBe(3);
    await limiter.close();
    await until(async () => (await clients()) === 1);
  });
});
