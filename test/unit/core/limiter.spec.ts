import {
  limiterBuilder,
  MemoryDriver,
  type AlgorithmName,
  type Limiter,
  type Verdict,
} from 'nestjs-distlimit';
import { ALGORITHMS as BUILT_IN } from '../../../lib/algorithms/index.js';
import { completePolicy } from '../../../lib/core/policy-completion.js';
import { ManualClock } from 'nestjs-distlimit/testing';

const ALGORITHMS: AlgorithmName[] = [
  'fixed-window',
  'sliding-window-log',
  'sliding-window-counter',
  'token-bucket',
  'leaky-bucket',
  'gcra',
];

const opened: Limiter[] = [];
let clock: ManualClock;

beforeEach(() => {
  clock = new ManualClock();
});

afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});

function build(
  algorithm: AlgorithmName,
  configure: (builder: ReturnType<typeof limiterBuilder>) => unknown = () => {},
): Limiter {
  const builder = limiterBuilder().name('p').algorithm(algorithm).clock(clock);
  configure(builder);
  const limiter = builder.build();
  opened.push(limiter);
  return limiter;
}

describe.each(ALGORITHMS)('a limiter with %s', (algorithm) => {
  const bursts = ['token-bucket', 'leaky-bucket', 'gcra'].includes(algorithm);
  const of = (limit: number, window: string): Limiter =>
    build(algorithm, (b) =>
      bursts ? b.limit(limit).window(window).burst(limit) : b.limit(limit).window(window),
    );
  const five = (): Limiter => of(5, '5s');

  it('admits exactly what it may at once, and denies without an exception', async () => {
    const limiter = five();
    const verdicts = await Promise.all(Array.from({ length: 1_000 }, () => limiter.consume('ip:1')));
    expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(5);
    expect(verdicts.at(-1)).toMatchObject({
      policy: 'p',
      subject: 'ip:1',
      limit: 5,
      remaining: 0,
      servedBy: 'memory',
    });
  });

  it('keeps subjects apart', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 5 });
    expect(await limiter.tryAcquire('a')).toBe(false);
    expect(await limiter.tryAcquire('b')).toBe(true);
  });

  it('denies a cost that is more than is left, and leaves what is left', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 3 });
    expect(await limiter.consume('a', { cost: 3 })).toMatchObject({ allowed: false, remaining: 2 });
    expect((await limiter.peek('a')).remaining).toBe(2);
  });

  it('denies a cost over capacity for ever, and takes nothing', async () => {
    const limiter = five();
    const verdict = await limiter.consume('a', { cost: 6 });
    expect(verdict).toMatchObject({ allowed: false, retryAfterMs: Infinity, remaining: 5 });
    expect(JSON.parse(JSON.stringify(verdict))).toMatchObject({ retryAfterMs: null });
    expect(limiter.status().keys).toBe(0);
  });

  it('lifts a denial exactly at retryAfterMs', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 5 });
    clock.advance(1_200);
    const { allowed, retryAfterMs } = await limiter.consume('a', { cost: 2 });
    expect(allowed).toBe(false);
    clock.advance(retryAfterMs - 1);
    expect(await limiter.consume('a', { cost: 2 })).toMatchObject({ allowed: false, retryAfterMs: 1 });
    clock.advance(1);
    expect(await limiter.consume('a', { cost: 2 })).toMatchObject({ allowed: true, retryAfterMs: 0 });
  });

  it('never admits more than the capacity after any idle time', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 5 });
    clock.advance(86_400_000);
    const verdicts = await Promise.all(Array.from({ length: 6 }, () => limiter.consume('a')));
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false]);
  });

  it('admits nothing with a limit of 0', async () => {
    const limiter = build(algorithm, (b) => b.limit(0));
    expect(await limiter.consume('a')).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMs: Infinity,
    });
    expect(limiter.status().keys).toBe(0);
  });

  it('peeks without consuming', async () => {
    const limiter = five();
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 });
    await limiter.consume('a', { cost: 4 });
    for (let i = 0; i < 3; i++)
      expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 1 });
    await limiter.consume('a');
    const denied = await limiter.peek('a');
    expect(denied).toMatchObject({ allowed: false, remaining: 0 });
    expect(denied.retryAfterMs).toBeGreaterThan(0);
  });

  it('refunds a verdict once, and only what it took', async () => {
    const limiter = five();
    const verdict = await limiter.consume('a', { cost: 3 });
    await limiter.refund(verdict);
    await limiter.refund(verdict);
    expect((await limiter.peek('a')).remaining).toBe(5);
    await limiter.consume('a', { cost: 5 });
    await limiter.refund(await limiter.consume('a'));
    expect((await limiter.peek('a')).remaining).toBe(0);
  });

  it('refuses to refund a copy of a verdict', async () => {
    const limiter = five();
    const copy = { ...(await limiter.consume('a')) } as Verdict;
    await expect(limiter.refund(copy)).rejects.toMatchObject({ code: 'RL_NOT_REFUNDABLE' });
  });

  it('gives back without a verdict, never below nothing used', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 2 });
    await limiter.refund('a', 1);
    expect((await limiter.peek('a')).remaining).toBe(4);
    await limiter.refund('a', 4);
    expect((await limiter.peek('a')).remaining).toBe(5);
    await limiter.refund('nobody', 3);
    expect((await limiter.peek('nobody')).remaining).toBe(5);
  });

  it('forgets on reset', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 5 });
    await limiter.reset('a');
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 5 });
    expect(limiter.status().keys).toBe(0);
  });

  it('blocks on demand and after a denial, and neither calls nor peeks extend it', async () => {
    const limiter = build(algorithm, (b) => b.limit(1).window('1s').burst(1).block('10s'));
    await limiter.consume('a');
    const denied = await limiter.consume('a');
    expect(denied).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 10_000 });
    clock.advance(9_999);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, retryAfterMs: 1 });
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, retryAfterMs: 1 });
    clock.advance(1);
    expect(await limiter.consume('a')).toMatchObject({ allowed: true });

    await limiter.block('b', '1h');
    expect(await limiter.consume('b')).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 });
    await limiter.unblock('b');
    expect(await limiter.consume('b')).toMatchObject({ allowed: true });
    await limiter.block('b', '1h');
    await limiter.reset('b');
    expect(await limiter.consume('b')).toMatchObject({ allowed: true });
  });

  it('takes nothing while it is blocked, and a refund of such a verdict gives nothing back', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 2 });
    await limiter.block('a', '1s');
    await limiter.refund(await limiter.consume('a'));
    await limiter.unblock('a');
    expect((await limiter.peek('a')).remaining).toBe(3);
  });

  it('keeps what was used when limit, window or burst change', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 4 });
    expect(await limiter.update({ limit: 10, burst: 10 })).toMatchObject({ limit: 10, windowMs: 5_000 });
    expect((await limiter.peek('a')).remaining).toBe(6);
    await limiter.update({ limit: 2, burst: 2 });
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, remaining: 0, limit: 2 });
    await limiter.update({ limit: 5, burst: 5, window: '10s' });
    expect((await limiter.peek('a')).remaining).toBe(1);
  });

  it('starts afresh when the algorithm changes', async () => {
    const limiter = five();
    await limiter.consume('a', { cost: 5 });
    const other = algorithm === 'fixed-window' ? 'sliding-window-log' : 'fixed-window';
    await limiter.update({ algorithm: other });
    expect((await limiter.peek('a')).remaining).toBe(5);
    expect(limiter.status().keys).toBe(0);
  });

  it('changes nothing when an update is wrong', async () => {
    const limiter = five();
    const before = limiter.policy;
    await expect(limiter.update({ limit: -1 })).rejects.toMatchObject({ code: 'RL_INVALID_LIMIT' });
    expect(limiter.policy).toBe(before);
  });

  it('answers without a promise in memory', () => {
    const limiter = five();
    expect(limiter.consumeSync('a', { cost: 4 })).toMatchObject({ allowed: true, remaining: 1 });
    // What a leaky bucket would have to hold is no place now.
    expect(limiter.tryAcquireSync('a')).toBe(algorithm !== 'leaky-bucket');
    expect(limiter.tryAcquireSync('a')).toBe(false);
  });

  it('says yes only where nothing has to wait', async () => {
    const limiter = five();
    const answers = [await limiter.tryAcquire('a'), await limiter.tryAcquire('a')];
    expect(answers).toEqual([true, algorithm !== 'leaky-bucket']);
    // A place that was not taken up is free again.
    expect((await limiter.peek('a')).remaining).toBe(algorithm === 'leaky-bucket' ? 4 : 3);
  });

  it('empties its store when everything has expired', async () => {
    const limiter = five();
    for (let i = 0; i < 10_000; i++) limiter.tryAcquireSync(`user:${i}`);
    expect(limiter.status().keys).toBe(10_000);
    clock.advance(12_000);
    expect(limiter.status().keys).toBe(0);
  });

  it.each(['__proto__', 'constructor', 'a'.repeat(10_000), '{x}:\u0000\r\n', 'ünïcode', '\ud800'])(
    'has a bucket of its own for the subject %j',
    async (subject) => {
      const limiter = build(algorithm, (b) => b.limit(1).burst(1));
      expect(await limiter.tryAcquire(subject)).toBe(true);
      expect(await limiter.tryAcquire(subject)).toBe(false);
      expect(await limiter.tryAcquire(`${subject}x`)).toBe(true);
    },
  );
});

describe('the default', () => {
  it('is 200 a second in a sliding window counter', () => {
    const limiter = limiterBuilder().build();
    opened.push(limiter);
    expect(limiter.policy).toMatchObject({
      limit: 200,
      windowMs: 1_000,
      algorithm: 'sliding-window-counter',
    });
  });

  it('takes every step of the chain', () => {
    const limiter = limiterBuilder()
      .name('orders')
      .limit(100)
      .window('1s')
      .algorithm('token-bucket')
      .burst(20)
      .block('1m')
      .driver('memory')
      .memory({ maxKeys: 1e6 })
      .clock(clock)
      .observer({})
      .build();
    opened.push(limiter);
    expect(limiter.policy).toMatchObject({ name: 'orders', burst: 20, blockMs: 60_000 });
  });
});

describe('bucket4j#88', () => {
  it('says 800 ms after 200 of a second that a token takes, and means it', async () => {
    const limiter = build('token-bucket', (b) => b.limit(1).window('1s'));
    await limiter.consume('a');
    clock.advance(200);
    expect((await limiter.consume('a')).retryAfterMs).toBe(800);
    clock.advance(799);
    expect(await limiter.tryAcquire('a')).toBe(false);
    clock.advance(1);
    expect(await limiter.tryAcquire('a')).toBe(true);
  });
});

describe('spring-cloud-gateway#2412', () => {
  it('mints nothing when two clocks a second apart take turns', async () => {
    const limiter = build('token-bucket', (b) => b.limit(10).window('1s').burst(10));
    const start = clock.now();
    let passed = 0;
    for (let i = 0; i < 200; i++) {
      clock.set(start + i + (i % 2) * 1_000);
      if (await limiter.tryAcquire('a')) passed++;
    }
    // Capacity, and what the furthest clock has seen elapse.
    expect(passed).toBeLessThanOrEqual(10 + Math.floor((1_199 * 10) / 1_000));
  });
});

describe('the time to live', () => {
  it.each([
    [3, '1s', 1],
    [1, '10s', 1],
  ])('of %i per %s with burst %i covers the whole drain', async (limit, window, burst) => {
    const limiter = build('token-bucket', (b) => b.limit(limit).window(window).burst(burst));
    await limiter.consume('a');
    const { retryAfterMs } = await limiter.peek('a');
    clock.advance(retryAfterMs - 1);
    expect(await limiter.tryAcquire('a')).toBe(false);
    clock.advance(1);
    expect(await limiter.tryAcquire('a')).toBe(true);
  });
});

describe('a clock that jumped ahead', () => {
  it.each(ALGORITHMS)(
    'locks no subject for good, also where several policies are decided together: %s',
    async (algorithm) => {
      const registry = { algorithms: BUILT_IN, report: () => {} };
      const driver = new MemoryDriver({ clock });
      const policy = completePolicy('p', { limit: 1, window: '1s', algorithm }, 'p', registry);
      const other = completePolicy('q', { limit: 1_000, window: '1s' }, 'q', registry);
      const group = [
        { policy, quota: policy, subject: 'a', cost: 1 },
        { policy: other, quota: other, subject: 'a', cost: 1 },
      ];
      const start = clock.now();
      clock.set(start + 3_600_000);
      expect(driver.decide(group).map(({ allowed }) => allowed)).toEqual([true, true]);
      clock.set(start);
      expect(driver.decide(group).map(({ allowed }) => allowed)).toEqual([false, true]);
      clock.set(start + 3_000);
      expect(driver.decide(group).map(({ allowed }) => allowed)).toEqual([true, true]);
      await driver.close();
    },
  );
});

describe('a limiter that was closed', () => {
  it('decides nothing any more', async () => {
    const limiter = build('fixed-window');
    await limiter.close();
    await expect(limiter.consume('a')).rejects.toMatchObject({ code: 'RL_CLOSED' });
    expect(() => limiter.tryAcquireSync('a')).toThrow('RL_CLOSED');
  });
});

describe('refunds of a token bucket', () => {
  it('mint nothing where several overlap', async () => {
    const limiter = build('token-bucket', (b) => b.limit(1).window('1s').burst(10));
    const a = await limiter.consume('x', { cost: 5 });
    const b = await limiter.consume('x', { cost: 5 });
    await limiter.refund(a);
    clock.advance(5_000);
    // By now b has drained, and only this is in the bucket.
    await limiter.consume('x', { cost: 5 });
    await limiter.refund(b);
    expect((await limiter.peek('x')).remaining).toBe(5);
  });
});

describe('a counter that uses more than a lowered limit allows', () => {
  it('is kept until that has drained, while it is asked for', async () => {
    const limiter = build('token-bucket', (b) => b.limit(10).window('1s').burst(10));
    await limiter.consume('x', { cost: 10 });
    await limiter.update({ limit: 1, burst: 1 });
    // 10 units drain at 1 a second: a call of 1 fits after 10 seconds, though a full bucket drains in one.
    expect((await limiter.consume('x')).retryAfterMs).toBe(10_000);
    for (let second = 1; second < 10; second++) {
      clock.advance(1_000);
      expect([second, await limiter.tryAcquire('x')]).toEqual([second, false]);
    }
    clock.advance(1_000);
    expect(await limiter.tryAcquire('x')).toBe(true);
  });
});
