import {
  limiterBuilder,
  MemoryDriver,
  type DecisionEvent,
  type Driver,
  type Limiter,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { delayed } from '../../support/wrapped-driver.js';

let clock: ManualClock;
let memory: MemoryDriver;
let seen: DecisionEvent[];

beforeEach(() => {
  clock = new ManualClock();
  memory = new MemoryDriver({ clock });
  seen = [];
});

afterEach(() => memory.close());

/** A leaky bucket that lets one call a second go, with room for five. */
function shaped(driver: Driver, block = 0): Limiter {
  return limiterBuilder()
    .limit(1)
    .window('1s')
    .algorithm('leaky-bucket')
    .burst(5)
    .block(block)
    .clock(clock)
    .driver(driver)
    .observer({ decision: (event) => void seen.push(event) })
    .build();
}

describe.each<[string, (limiter: Limiter, subject: string) => Promise<boolean>, (inner: Driver) => Driver]>([
  ['tryAcquire()', (limiter, subject) => limiter.tryAcquire(subject), (inner) => inner],
  ['tryAcquire() on a driver that answers later', (l, subject) => l.tryAcquire(subject), delayed],
  ['tryAcquireSync()', async (limiter, subject) => limiter.tryAcquireSync(subject), (inner) => inner],
])('%s on a leaky bucket', (_name, tryAcquire, driverOf) => {
  it('takes no place where the call would have to wait, however many try at once', async () => {
    const limiter = shaped(driverOf(memory));
    const answers = await Promise.all(Array.from({ length: 20 }, () => tryAcquire(limiter, 'a')));
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect((await limiter.peek('a')).remaining).toBe(4);
    clock.advance(1_000);
    expect(await tryAcquire(limiter, 'a')).toBe(true);
  });

  it('is a denial to observers', async () => {
    const limiter = shaped(driverOf(memory));
    await tryAcquire(limiter, 'a');
    await tryAcquire(limiter, 'a');
    expect(seen.map(({ outcome }) => outcome)).toEqual(['allowed', 'denied']);
    expect(seen[1]).toMatchObject({ policy: limiter.policy, verdict: { retryAfterMs: 1_000 } });
    expect(seen[1]!.policy).toBe(limiter.policy);
  });

  it('starts no block where there was a place to wait, and starts one where there was none', async () => {
    const limiter = shaped(driverOf(memory), 60_000);
    expect([await tryAcquire(limiter, 'a'), await tryAcquire(limiter, 'a')]).toEqual([true, false]);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, remaining: 4 });
    await limiter.consume('a', { cost: 4 });
    expect(await tryAcquire(limiter, 'a')).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    // A call while it is blocked does not extend the block.
    clock.advance(1_000);
    expect(await tryAcquire(limiter, 'a')).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, retryAfterMs: 59_000 });
  });

  it('starts a block where the wait would have been longer than maxDelay', async () => {
    const limiter = shaped(driverOf(memory), 60_000);
    await limiter.update({ maxDelay: 1_000 });
    await limiter.consume('a', { cost: 1 });
    expect(await tryAcquire(limiter, 'a')).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
    await limiter.consume('a', { cost: 1 });
    expect(await tryAcquire(limiter, 'a')).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
  });
});

describe.each<[string, (limiter: Limiter, subject: string, cost?: number) => unknown]>([
  [
    'consumeSync()',
    (limiter, subject, cost) => limiter.consumeSync(subject, cost === undefined ? {} : { cost }),
  ],
  ['tryAcquireSync()', (limiter, subject, cost) => limiter.tryAcquireSync(subject, cost)],
])('%s', (_name, call) => {
  // With an observer the call takes the longer way, without one the shorter.
  it.each([[[]], [[{ decision: () => {} }]]])(
    'refuses what is no subject and what is no cost %#',
    async (observers) => {
      const builder = limiterBuilder().limit(3).clock(clock).driver(memory);
      for (const observer of observers) builder.observer(observer);
      const limiter = builder.build();
      for (const subject of [1, '', null, {}, Symbol('s')]) {
        expect(() => call(limiter, subject as string)).toThrow(
          expect.objectContaining({ code: 'RL_INVALID_SUBJECT' }) as Error,
        );
      }
      for (const cost of [0, -1, 1.5, NaN, '2', Infinity]) {
        expect(() => call(limiter, 'a', cost as number)).toThrow(
          expect.objectContaining({ code: 'RL_INVALID_COST' }) as Error,
        );
      }
      expect((await limiter.peek('a')).remaining).toBe(3);
      expect(memory.status().keys).toBe(0);
    },
  );
});
