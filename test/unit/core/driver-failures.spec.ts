import {
  limiterBuilder,
  MemoryDriver,
  RateLimiterService,
  type Driver,
  type Limiter,
  type OnUnavailable,
  type PolicyOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { engineOf } from '../../support/engine.js';
import { failing, failingSynchronous, wrapped, type Replacements } from '../../support/wrapped-driver.js';

const AWAY = new Error('the store is away');

let memory: MemoryDriver;
let told: { driver: string; error: unknown }[];

beforeEach(() => {
  memory = new MemoryDriver({ clock: new ManualClock() });
  told = [];
});

afterEach(() => memory.close());

const observer = { driverError: (event: { driver: string; error: unknown }) => void told.push(event) };

async function limiterWith(members: Replacements, policy: Partial<PolicyOptions> = {}): Promise<Limiter> {
  const limiter = limiterBuilder()
    .limit(3)
    .window('1s')
    .driver(wrapped(memory, members))
    .observer(observer)
    .build();
  await limiter.update(policy);
  return limiter;
}

const unavailable = expect.objectContaining({ code: 'RL_DRIVER_UNAVAILABLE', cause: AWAY }) as object;

describe('a driver that fails', () => {
  it.each<[keyof Driver, (limiter: Limiter) => Promise<unknown>]>([
    ['decide', (limiter) => limiter.consume('a')],
    ['decide', (limiter) => limiter.tryAcquire('a')],
    ['decide', (limiter) => limiter.acquire('a')],
    ['peek', (limiter) => limiter.peek('a')],
    ['giveBack', (limiter) => limiter.refund('a')],
    ['refund', async (limiter) => limiter.refund(await limiter.consume('a'))],
    ['reset', (limiter) => limiter.reset('a')],
    ['block', (limiter) => limiter.block('a', '1s')],
    ['unblock', (limiter) => limiter.unblock('a')],
    ['unblock', (limiter) => limiter.block('a', 0)],
  ])('is told of, and is the cause of the error: %s', async (member, call) => {
    const thrown = await limiterWith(failing(AWAY, member));
    await expect(call(thrown)).rejects.toEqual(unavailable);
    const rejected = await limiterWith({ [member]: () => Promise.reject(AWAY) });
    await expect(call(rejected)).rejects.toEqual(unavailable);
    expect(told).toEqual([
      { driver: 'wrapped', error: AWAY },
      { driver: 'wrapped', error: AWAY },
    ]);
  });

  it.each<[OnUnavailable, boolean | 'throws']>([
    ['allow', true],
    ['deny', false],
    ['throw', 'throws'],
    ['fallback', 'throws'],
  ])('has the policy say what becomes of the call: %s', async (onUnavailable, expected) => {
    const synchronous = failingSynchronous(AWAY);
    const limiter = await limiterWith({ ...failing(AWAY, 'decide'), synchronous }, { onUnavailable });
    if (expected === 'throws') {
      await expect(limiter.consume('a')).rejects.toEqual(unavailable);
      await expect(limiter.tryAcquire('a')).rejects.toEqual(unavailable);
      expect(() => limiter.consumeSync('a')).toThrow(unavailable as Error);
      expect(() => limiter.tryAcquireSync('a')).toThrow(unavailable as Error);
    } else {
      const verdict = { allowed: expected, servedBy: 'fallback', retryAfterMs: expected ? 0 : 1_000 };
      expect(await limiter.consume('a')).toMatchObject(verdict);
      expect(await limiter.tryAcquire('a')).toBe(expected);
      expect(limiter.consumeSync('a')).toMatchObject(verdict);
      expect(limiter.tryAcquireSync('a')).toBe(expected);
    }
    expect(told).toHaveLength(4);
  });

  it('asks policies in shadow mode for nothing', async () => {
    const engine = engineOf(
      { driver: wrapped(memory, failing(AWAY, 'decide')) },
      {
        enforced: { limit: 1, window: '1s', onUnavailable: 'allow' },
        trial: { limit: 1, window: '1s', mode: 'shadow' },
      },
    );
    const service = new RateLimiterService(engine);
    const charges = ['enforced', 'trial'].map((policy) => ({ policy, subject: 'a' }));
    expect(await service.consumeAll(charges)).toMatchObject([{ allowed: true }, { allowed: true }]);
    expect(await service.consume('trial', 'a')).toMatchObject({ allowed: true });
  });
});

describe('a driver that answers with something else', () => {
  const good = {
    allowed: true,
    remaining: 1,
    retryAfterMs: 0,
    resetAfterMs: 0,
    delayMs: 0,
    servedBy: 'memory',
  };

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['no decision', []],
    ['too many', [good, good]],
    ['a hole', [undefined]],
    ['no yes or no', [{ ...good, allowed: undefined }]],
    ['no number', [{ ...good, remaining: NaN }]],
  ])('lets nothing pass for it: %s', async (_title, answer) => {
    for (const decide of [() => answer, async () => answer]) {
      const limiter = await limiterWith({ decide });
      await expect(limiter.consume('a')).rejects.toMatchObject({
        code: 'RL_DRIVER_UNAVAILABLE',
        cause: { code: 'RL_INVALID_ANSWER' },
      });
      await limiter.update({ onUnavailable: 'deny' });
      expect(await limiter.consume('a')).toMatchObject({ allowed: false });
    }
    expect(told).toHaveLength(4);
  });

  it('is not believed in peek() either', async () => {
    const limiter = await limiterWith({ peek: () => ({}) });
    await expect(limiter.peek('a')).rejects.toMatchObject({ cause: { code: 'RL_INVALID_ANSWER' } });
  });
});
