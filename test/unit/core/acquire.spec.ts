import { limiterBuilder, MemoryDriver, type Driver, type Limiter } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { delayed, failing, wrapped } from '../../support/wrapped-driver.js';

let clock: ManualClock;
let limiter: Limiter;

beforeEach(() => {
  clock = new ManualClock();
  limiter = limiterBuilder().limit(1).window('1s').algorithm('fixed-window').clock(clock).build();
});

afterEach(() => limiter.close());

/** Lets everything that is ready run. */
const tick = () => new Promise<void>((resolve) => void setImmediate(resolve));

describe('acquire()', () => {
  it('serves callers in the order in which they came, each at its time', async () => {
    const served: number[] = [];
    const calls = [0, 1, 2, 3].map((i) => limiter.acquire('a').then(() => served.push(i)));
    await tick();
    expect(served).toEqual([0]);
    for (let i = 1; i < 4; i++) {
      clock.advance(999);
      await tick();
      expect(served).toHaveLength(i);
      clock.advance(1);
      await tick();
      expect(served).toHaveLength(i + 1);
    }
    await Promise.all(calls);
    expect(served).toEqual([0, 1, 2, 3]);
  });

  it('denies as soon as it is clear that the wait would be too long', async () => {
    await limiter.acquire('a');
    expect(await limiter.acquire('a', { maxWaitMs: 999 })).toMatchObject({
      allowed: false,
      retryAfterMs: 1_000,
    });
    const patient = limiter.acquire('a', { maxWaitMs: 1_000 });
    const behind = limiter.acquire('a', { maxWaitMs: 1_500 });
    clock.advance(1_000);
    expect(await patient).toMatchObject({ allowed: true });
    expect(await behind).toMatchObject({ allowed: false });
  });

  it('frees the place of a caller that gives up, at once', async () => {
    await limiter.acquire('a');
    const leaving = new AbortController();
    const first = limiter.acquire('a', { signal: leaving.signal });
    const second = limiter.acquire('a');
    await tick();
    const reason = new Error('enough');
    leaving.abort(reason);
    await expect(first).rejects.toBe(reason);
    clock.advance(1_000);
    expect(await second).toMatchObject({ allowed: true });
    expect((await limiter.peek('a')).remaining).toBe(0);
  });

  it('takes nothing for a signal that was aborted before', async () => {
    await expect(limiter.acquire('a', { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
    expect((await limiter.peek('a')).remaining).toBe(1);
  });

  it('never lets more pass than there are permits, however many wait', async () => {
    let passed = 0;
    const calls = Array.from({ length: 50 }, () =>
      limiter.acquire('a', { maxWaitMs: 10_000 }).then((v) => (v.allowed ? passed++ : 0)),
    );
    for (let second = 1; second <= 10; second++) {
      await tick();
      expect(passed).toBe(second);
      clock.advance(1_000);
    }
    await tick();
    await Promise.all(calls);
    expect(passed).toBe(11);
  });

  it('looks again when something is given back, reset or changed', async () => {
    const verdict = await limiter.acquire('a');
    const waiting = limiter.acquire('a');
    await tick();
    await limiter.refund(verdict);
    expect(await waiting).toMatchObject({ allowed: true });

    const afterReset = limiter.acquire('a');
    await tick();
    await limiter.reset('a');
    expect(await afterReset).toMatchObject({ allowed: true });

    const afterUpdate = limiter.acquire('a');
    await tick();
    await limiter.update({ limit: 5 });
    expect(await afterUpdate).toMatchObject({ allowed: true });
  });

  it('denies at once what can never fit, and holds up nobody behind it', async () => {
    const never = limiter.acquire('a', { cost: 2 });
    const next = limiter.acquire('a');
    expect(await never).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await next).toMatchObject({ allowed: true });
  });

  it('has a line of bounded length', async () => {
    await limiter.acquire('a');
    const waiting = Array.from({ length: 1_000 }, () =>
      limiter.acquire('a', { maxWaitMs: 1e9 }).catch((e: unknown) => e),
    );
    await tick();
    expect(await limiter.acquire('a', { maxWaitMs: 1e9 })).toMatchObject({ allowed: false });
    await limiter.close();
    expect(await waiting[0]).toMatchObject({ code: 'RL_CLOSED' });
    await Promise.all(waiting);
  });

  it('holds a call of a leaky bucket, and gives its place back when it leaves', async () => {
    const shaped = limiterBuilder()
      .limit(1)
      .window('1s')
      .algorithm('leaky-bucket')
      .burst(3)
      .clock(clock)
      .build();
    await shaped.acquire('a');
    let gone = false;
    const held = shaped.acquire('a').then((verdict) => {
      gone = true;
      return verdict;
    });
    const leaving = new AbortController();
    const leaver = shaped.acquire('a', { signal: leaving.signal });
    await tick();
    leaving.abort();
    await expect(leaver).rejects.toThrow('aborted');
    await tick();
    expect((await shaped.peek('a')).remaining).toBe(1);
    clock.advance(999);
    await tick();
    expect(gone).toBe(false);
    clock.advance(1);
    expect(await held).toMatchObject({ allowed: true, delayMs: 1_000 });
    // A place further off than the caller would wait is not taken.
    await shaped.acquire('a', { maxWaitMs: 0 }).then((v) => expect(v.allowed).toBe(false));
    expect((await shaped.peek('a')).remaining).toBe(2);
    await shaped.close();
  });

  it('works in real time too', async () => {
    const real = limiterBuilder().limit(1).window('50ms').algorithm('token-bucket').build();
    await real.acquire('a');
    const start = performance.now();
    expect(await real.acquire('a')).toMatchObject({ allowed: true });
    expect(performance.now() - start).toBeGreaterThan(40);
    await real.close();
  });

  it('refuses a wait that is none', async () => {
    await expect(limiter.acquire('a', { maxWaitMs: -1 })).rejects.toMatchObject({
      code: 'RL_INVALID_DURATION',
    });
  });
});

describe('acquire() on a leaky bucket', () => {
  const shaped = (driver?: Driver) => {
    const builder = limiterBuilder().limit(1).window('1s').algorithm('leaky-bucket').burst(3).clock(clock);
    return (driver === undefined ? builder : builder.driver(driver)).build();
  };

  it('rejects a held call when it is closed, and gives its place back', async () => {
    const memory = new MemoryDriver({ clock });
    const bucket = shaped(memory);
    await bucket.acquire('a');
    const held = bucket.acquire('a');
    await tick();
    expect((await bucket.peek('a')).remaining).toBe(1);
    await bucket.close();
    await expect(held).rejects.toMatchObject({ code: 'RL_CLOSED' });
    expect((await shaped(memory).peek('a')).remaining).toBe(2);
    await memory.close();
  });

  it.each<[string, (inner: Driver) => Driver]>([
    ['at once', (inner) => inner],
    ['later', delayed],
  ])(
    'takes no place further off than the caller waits, where the driver answers %s',
    async (_title, driverOf) => {
      const memory = new MemoryDriver({ clock });
      const bucket = shaped(driverOf(memory));
      await bucket.consume('a');
      const tooLate = await Promise.all(
        Array.from({ length: 5 }, () => bucket.acquire('a', { maxWaitMs: 500 })),
      );
      expect(tooLate.map(({ allowed, retryAfterMs }) => [allowed, retryAfterMs])).toEqual(
        Array.from({ length: 5 }, () => [false, 500]),
      );
      expect((await bucket.peek('a')).remaining).toBe(2);
      // What it says is true: half a second later the same call finds its place.
      clock.advance(500);
      const going = bucket.acquire('a', { maxWaitMs: 500 });
      await tick();
      await tick();
      clock.advance(500);
      expect(await going).toMatchObject({ allowed: true });
      await bucket.close();
      await memory.close();
    },
  );
});

describe('the denial of acquire()', () => {
  it('can be refunded, and gives nothing back', async () => {
    await limiter.acquire('a');
    const denied = await limiter.acquire('a', { maxWaitMs: 10 });
    await limiter.refund(denied);
    const first = limiter.acquire('a', { maxWaitMs: 1_000 });
    const behind = limiter.acquire('a', { maxWaitMs: 500 });
    await tick();
    clock.advance(500);
    const late = await behind;
    expect(late).toMatchObject({ allowed: false });
    await limiter.refund(late);
    clock.advance(500);
    expect((await first).allowed).toBe(true);
  });

  it('says how long it takes from then on, not from when somebody before it was denied', async () => {
    await limiter.acquire('a');
    const first = limiter.acquire('a');
    const behind = limiter.acquire('a', { maxWaitMs: 400 });
    await tick();
    clock.advance(400);
    expect(await behind).toMatchObject({ allowed: false, retryAfterMs: 600, resetAfterMs: 600 });
    const waiting = Array.from({ length: 999 }, () =>
      limiter.acquire('a', { maxWaitMs: 1e9 }).catch(() => {}),
    );
    clock.advance(100);
    expect(await limiter.acquire('a')).toMatchObject({ allowed: false, retryAfterMs: 500 });
    await limiter.close();
    await expect(first).rejects.toMatchObject({ code: 'RL_CLOSED' });
    await Promise.all(waiting);
  });
});

describe('acquire() on a driver that hangs', () => {
  it('waits no longer than it may, and gives back what was charged after it had left', async () => {
    const memory = new MemoryDriver({ clock });
    let answer = () => {};
    const hanging = wrapped(memory, {
      decide: (group: Parameters<Driver['decide']>[0]) =>
        new Promise((resolve) => (answer = () => resolve(memory.decide(group)))),
    });
    const slow = limiterBuilder().limit(1).window('1s').clock(clock).driver(hanging).build();
    const first = slow.acquire('a', { maxWaitMs: 50 });
    const behind = slow.acquire('a', { maxWaitMs: 60 });
    await tick();
    clock.advance(49);
    await tick();
    clock.advance(1);
    expect(await first).toMatchObject({ allowed: false, servedBy: 'fallback' });
    clock.advance(10);
    expect(await behind).toMatchObject({ allowed: false });
    answer();
    await tick();
    expect((await memoryLimiter(memory).peek('a')).remaining).toBe(1);
    await memory.close();
  });

  it('gives a store a moment to answer who will not wait for a turn', async () => {
    const memory = new MemoryDriver();
    const real = limiterBuilder().limit(1).window('1h').driver(delayed(memory)).build();
    const answers = await Promise.all([1, 2, 3].map(() => real.acquire('a', { maxWaitMs: 0 })));
    expect(answers.map(({ allowed, servedBy }) => [allowed, servedBy])).toEqual([
      [true, 'memory'],
      [false, 'memory'],
      [false, 'memory'],
    ]);
    await memory.close();
  });

  it('fails where the driver does', async () => {
    const memory = new MemoryDriver({ clock });
    const broken = limiterBuilder()
      .clock(clock)
      .driver(wrapped(memory, failing(new Error('away'), 'decide')))
      .build();
    await expect(broken.acquire('a')).rejects.toMatchObject({ code: 'RL_DRIVER_UNAVAILABLE' });
    await memory.close();
  });
});

describe('a call that waits', () => {
  it('looks again when a block is lifted by a block of nothing', async () => {
    await limiter.block('a', '1h');
    const waiting = limiter.acquire('a', { maxWaitMs: 7_200_000 });
    await tick();
    await limiter.block('a', 0);
    expect(await waiting).toMatchObject({ allowed: true });
  });

  it('looks again where something was given back while it was being denied', async () => {
    const memory = new MemoryDriver({ clock });
    const decided: (() => void)[] = [];
    const slow = wrapped(memory, {
      decide: (group: Parameters<Driver['decide']>[0]) => {
        const decisions = memory.decide(group);
        return new Promise((resolve) => void decided.push(() => resolve(decisions)));
      },
    });
    const shared = limiterBuilder().limit(1).window('1h').clock(clock).driver(slow).build();
    const first = shared.consume('a');
    await tick();
    decided.shift()!();
    const verdict = await first;
    const waiting = shared.acquire('a', { maxWaitMs: 7_200_000 });
    await tick();
    // It has been denied, and does not know yet.
    await shared.refund(verdict);
    decided.shift()!();
    await tick();
    decided.shift()!();
    expect(await waiting).toMatchObject({ allowed: true });
    await memory.close();
  });
});

/** Another limiter of the same counters. */
function memoryLimiter(driver: Driver): Limiter {
  return limiterBuilder().limit(1).window('1s').clock(clock).driver(driver).build();
}
