import { limiterBuilder, type Limiter } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';

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
