import { limiterBuilder, RedisDriver, type PolicyOptions, type RedisSource } from 'nestjs-distlimit';
import { RateLimiter } from '../../lib/core/rate-limiter.js';
import type { RateLimitObserver } from '../../lib/core/observer.js';
import { engineOf } from '../support/engine.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { chargeOf } from '../unit/drivers/support.js';

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

function driverOf(options: Partial<ConstructorParameters<typeof RedisDriver>[0]> = {}): RedisDriver {
  const driver = new RedisDriver({ redis: server.url, prefix: `f${++prefixes}`, ...options });
  opened.push(driver);
  return driver;
}

function limiterOf(
  policy: Partial<PolicyOptions> = {},
  redis: RedisSource = server.url,
  observer: RateLimitObserver = {},
) {
  const options = { redis, driver: 'redis', prefix: `f${++prefixes}`, observers: [observer] } as const;
  const limiter = new RateLimiter(engineOf(options, { p: { limit: 5, window: '1m', ...policy } }));
  opened.push(limiter);
  return limiter;
}

const DOWN = { redis: 'redis://127.0.0.1:1', timeoutMs: 100 };

describe('Redis that is not there when the process starts', () => {
  it('fails calls clearly, and is used as soon as it is there', async () => {
    await server.kill();
    const driver = driverOf();
    const charge = chargeOf('a', { limit: 5 });
    const early = driver.decide([charge]);
    await expect(early).rejects.toMatchObject({ code: 'RL_REDIS_NOT_READY' });
    await expect(early).rejects.toThrow(/ECONNREFUSED/);
    await expect(driver.decide([charge])).rejects.toMatchObject({ code: 'RL_REDIS_NOT_READY' });
    expect(driver.status().lastError).toContain('ECONNREFUSED');
    await server.restart();
    await until(async () =>
      driver.decide([charge]).then(
        () => true,
        () => false,
      ),
    );
  });

  it('is waited for at start-up: calls before it is there are no failures', async () => {
    await server.kill();
    const driver = driverOf();
    const early = driver.decide([chargeOf('a', { limit: 5 })]);
    await server.restart();
    expect((await early)[0]).toMatchObject({ allowed: true });
  });

  it('fails every verb with RL_DRIVER_UNAVAILABLE', async () => {
    const errors: unknown[] = [];
    const limiter = limiterOf({}, DOWN.redis, { driverError: ({ error }) => errors.push(error) });
    const calls = await Promise.allSettled([
      limiter.consume('p', 'a'),
      limiter.tryAcquire('p', 'a'),
      limiter.acquire('p', 'a'),
      limiter.consumeAll([{ policy: 'p', subject: 'a' }]),
      limiter.peek('p', 'a'),
      limiter.refund('p', 'a', 1),
      limiter.reset('p', 'a'),
      limiter.block('p', 'a', '1s'),
      limiter.unblock('p', 'a'),
    ]);
    for (const call of calls) {
      expect(call).toMatchObject({
        reason: { code: 'RL_DRIVER_UNAVAILABLE', cause: { code: 'RL_REDIS_NOT_READY' } },
      });
    }
    expect(errors).toHaveLength(calls.length);
  });

  it('lets calls pass or denies them, as the policy says', async () => {
    const [allow, deny] = [
      limiterOf({ onUnavailable: 'allow' }, DOWN.redis),
      limiterOf({ onUnavailable: 'deny' }, DOWN.redis),
    ];
    const [passed, denied] = await Promise.all([allow.consume('p', 'a'), deny.consume('p', 'a')]);
    expect(passed).toMatchObject({ allowed: true, servedBy: 'fallback' });
    expect(denied).toMatchObject({ allowed: false, servedBy: 'fallback' });
    await allow.refund(await allow.consume('p', 'a'));
  });

  it('keeps no closed driver busy', async () => {
    const driver = driverOf(DOWN);
    const early = driver.decide([chargeOf('a')]);
    await driver.close();
    await expect(early).rejects.toMatchObject({ code: 'RL_CLOSED' });
    await expect(driver.decide([chargeOf('a')])).rejects.toMatchObject({ code: 'RL_CLOSED' });
  });
});

describe('a frozen Redis', () => {
  it('fails calls in time, and counts none of them when it wakes up', async () => {
    const driver = driverOf({ timeoutMs: 100 });
    const charge = chargeOf('a', { limit: 10, algorithm: 'fixed-window', window: '30d' });
    await driver.decide([charge]);
    server.freeze();
    try {
      const before = performance.now();
      const calls = await Promise.allSettled([
        driver.decide([charge]),
        driver.decide([charge]),
        driver.reset(charge),
      ]);
      expect(performance.now() - before).toBeLessThan(400);
      for (const call of calls) expect(call).toMatchObject({ reason: { code: 'RL_REDIS_TIMEOUT' } });
    } finally {
      server.resume();
    }
    expect((await driver.peek(charge)).remaining).toBe(9);
  });

  it('is not what a busy event loop is taken for', async () => {
    const driver = driverOf({ timeoutMs: 100 });
    await driver.started;
    const decided = driver.decide([chargeOf('a')]);
    // What the call awaits before it is sent, in the immediate that comes before this one.
    for (let i = 0; i < 10; i++) await undefined;
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (const end = performance.now() + 300; performance.now() < end;);
    expect((await decided)[0]!.allowed).toBe(true);
  });
});

describe('a Redis that refuses', () => {
  it('the password: fails calls, says why, and lets nothing escape', async () => {
    await server.client.config('SET', 'requirepass', 'right');
    try {
      const driver = driverOf({ redis: server.url.replace('//', '//:wrong@') });
      await expect(driver.decide([chargeOf('a')])).rejects.toMatchObject({ code: 'RL_REDIS_NOT_READY' });
      expect(driver.status().lastError).toContain('WRONGPASS');
    } finally {
      await server.client.config('SET', 'requirepass', '');
    }
  });

  it('to take more: fails calls that would write, until there is memory again', async () => {
    const driver = driverOf();
    const charge = chargeOf('a', { limit: 5, algorithm: 'fixed-window', window: '30d' });
    await driver.decide([charge]);
    await server.client.config('SET', 'maxmemory', '1');
    try {
      await expect(driver.decide([charge])).rejects.toThrow(/OOM/);
      expect((await driver.peek(charge)).remaining).toBe(4);
    } finally {
      await server.client.config('SET', 'maxmemory', '0');
    }
    expect((await driver.decide([charge]))[0]!.remaining).toBe(3);
  });

  it('to be written to: is asked again when another server is the master', async () => {
    const driver = driverOf();
    await driver.decide([chargeOf('a')]);
    await server.client.replicaof('127.0.0.1', 1);
    await expect(driver.decide([chargeOf('a')])).rejects.toThrow(/READONLY/);
    await server.client.replicaof('NO', 'ONE');
    await until(async () =>
      driver.decide([chargeOf('a')]).then(
        () => true,
        () => false,
      ),
    );
  });
});

describe('a connection that is taken, and on which nobody speaks', () => {
  it('is given up, so that another can be tried', async () => {
    const proxy = await TcpProxy.open(server.port);
    try {
      const driver = driverOf({ redis: proxy.url });
      await driver.decide([chargeOf('a')]);
      proxy.silence();
      // The connection for commands, and the one that listens.
      const joined = proxy.joined(2);
      await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await server.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await joined;
      proxy.heal();
      await until(async () =>
        driver.decide([chargeOf('a')]).then(
          () => true,
          () => false,
        ),
      );
    } finally {
      await proxy.close();
    }
  });
});

describe('a user with few rights', () => {
  const RIGHTS =
    '+eval +evalsha +script|load +time +mget +hget +hmget +hset +set +append +unlink +pttl +pexpire +pexpireat +llen +lrange +lset +ltrim +rpush +publish +subscribe +info +ping +hello';

  async function asUser(name: string, ...rights: string[]): Promise<string> {
    await server.client.acl('SETUSER', name, 'on', '>secret', ...rights, ...RIGHTS.split(' '));
    return server.url.replace('//', `//${name}:secret@`);
  }

  it('does everything that the guide allows it', async () => {
    const redis = await asUser('limits', '~shop:*', '&shop:*');
    const driver = driverOf({ redis, prefix: 'shop' });
    for (const algorithm of ['sliding-window-log', 'token-bucket'] as const) {
      const charge = chargeOf('a', { limit: 2, algorithm, block: '1s' }, algorithm);
      const [{ receipt } = {}] = await driver.decide([charge]);
      await driver.refund(charge, receipt!);
      for (let i = 0; i < 3; i++) await driver.decide([charge]);
      expect((await driver.decide([charge]))[0]).toMatchObject({ allowed: false, servedBy: 'deny-cache' });
      await driver.giveBack(charge, 1);
      await driver.block(charge, 1_000);
      await driver.unblock(charge);
      await driver.peek(charge);
      await driver.reset(charge);
    }
    expect(driver.status().lastError).toBeNull();
  });

  it('remembers no denial where nobody would tell it of changes', async () => {
    const redis = await asUser('deaf', '~deaf:*', 'resetchannels');
    const driver = driverOf({ redis, prefix: 'deaf' });
    const charge = chargeOf('a', { limit: 1 });
    await driver.decide([charge]);
    for (let i = 0; i < 2; i++) {
      expect((await driver.decide([charge]))[0]).toMatchObject({ allowed: false, servedBy: 'redis' });
    }
    await driver.reset(charge);
    expect((await driver.decide([charge]))[0]!.allowed).toBe(true);
  });

  it('fails clearly where a key is none of his', async () => {
    const redis = await asUser('limits', 'resetkeys', '~shop:*', '&*');
    const driver = driverOf({ redis, prefix: 'other' });
    await expect(driver.decide([chargeOf('a')])).rejects.toThrow(/NOPERM/);
  });
});

describe('a source that is none', () => {
  it.each<[string, unknown, RegExp]>([
    ['another protocol', 'http://localhost', /^RL_INVALID_OPTION: redis: expected a URL/],
    ['no URL', 'localhost', /redis:/],
    ['a number', 6379, /redis: expected a URL/],
    ['no node', { nodes: [] }, /redis\.nodes: expected at least one node, received an array of 0/],
    ['no name', { sentinels: [{ host: 'a' }] }, /redis\.name/],
    ['no address', { password: 'x' }, /at least one of host, port and path/],
    ['a wrong port', { port: 70_000 }, /redis\.port: expected a port, 1 to 65535, received 70000/],
    ['a prefix that decides the slot', { host: 'a', keyPrefix: '{a}' }, /redis\.keyPrefix/],
  ])('is refused: %s', (_title, redis, message) => {
    expect(() =>
      limiterBuilder(redis as RedisSource)
        .driver('redis')
        .build(),
    ).toThrow(message);
  });

  it('tells no secret', () => {
    expect(() => limiterBuilder('http://me:hush@host').driver('redis').build()).toThrow(/^((?!hush).)*$/);
  });

  it('is missing', () => {
    expect(() => limiterBuilder().driver('redis').build()).toThrow(/^RL_INVALID_OPTION: redis/);
    expect(() => limiterBuilder().driver('hybrid').build()).toThrow(/^RL_INVALID_OPTION: redis/);
  });
});
