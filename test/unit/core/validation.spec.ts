import { limiterBuilder, RateLimitConfigError, type PolicyOptions } from 'nestjs-distlimit';
import { ALGORITHMS } from '../../../lib/algorithms/index.js';
import type { Diagnostic } from '../../../lib/core/diagnostics.js';
import { completePolicy } from '../../../lib/core/policy-completion.js';
import { completeOptions } from '../../../lib/nest/module-options.js';

function complete(options: unknown, told: Diagnostic[] = []) {
  return completePolicy('p', options as PolicyOptions, 'policies.p', {
    algorithms: ALGORITHMS,
    report: (diagnostic) => told.push(diagnostic),
  });
}

function problemOf(run: () => unknown): Partial<RateLimitConfigError> {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitConfigError);
    const { code, path, expected, received, message } = error as RateLimitConfigError;
    return { code, path, expected, received, message };
  }
  throw new Error('nothing was thrown');
}

describe('a policy', () => {
  it.each<[string, object, string, string]>([
    ['an unknown option', { limits: 3 }, 'RL_UNKNOWN_OPTION', 'policies.p.limits'],
    ['a negative limit', { limit: -1 }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['a broken limit', { limit: 1.5 }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['a limit that is no number', { limit: 'ten' }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['NaN', { limit: NaN }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['no limit', { limit: undefined }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['an empty text', { limit: '' }, 'RL_INVALID_LIMIT', 'policies.p.limit'],
    ['a window of nothing', { window: 0 }, 'RL_INVALID_DURATION', 'policies.p.window'],
    ['half a millisecond', { window: 0.5 }, 'RL_INVALID_DURATION', 'policies.p.window'],
    ['a unit that is none', { window: '1y' }, 'RL_INVALID_DURATION', 'policies.p.window'],
    ['two joined texts', { window: '6000060000x' }, 'RL_INVALID_DURATION', 'policies.p.window'],
    ['a burst of 0', { algorithm: 'token-bucket', burst: 0 }, 'RL_INVALID_BURST', 'policies.p.burst'],
    ['an unknown algorithm', { algorithm: 'sliding' }, 'RL_UNKNOWN_ALGORITHM', 'policies.p.algorithm'],
    ['an inherited name', { algorithm: 'constructor' }, 'RL_UNKNOWN_ALGORITHM', 'policies.p.algorithm'],
    ['an unknown key part', { key: 'usr' }, 'RL_INVALID_KEY', 'policies.p.key'],
    ['no key part', { key: [] }, 'RL_INVALID_KEY', 'policies.p.key'],
    ['a header that is none', { key: 'header:x y' }, 'RL_INVALID_KEY', 'policies.p.key'],
    ['a cost of 0', { cost: 0 }, 'RL_INVALID_COST', 'policies.p.cost'],
    ['a cost over capacity', { cost: 11 }, 'RL_COST_OVER_CAPACITY', 'policies.p.cost'],
    ['an unknown mode', { mode: 'dry' }, 'RL_INVALID_OPTION', 'policies.p.mode'],
    ['a skip that is none', { skip: true }, 'RL_INVALID_OPTION', 'policies.p.skip'],
    ['numbers no double holds', { limit: 1e9, window: '365d' }, 'RL_QUOTA_TOO_LARGE', 'policies.p'],
  ])('refuses %s', (_title, wrong, code, path) => {
    expect(problemOf(() => complete({ limit: 10, window: '1s', ...wrong }))).toMatchObject({ code, path });
  });

  it('tells of an option that is missing as of its value', () => {
    expect(problemOf(() => complete({ window: '1s' })).message).toBe(
      'RL_INVALID_LIMIT: policies.p.limit: expected a whole number ≥ 0, received undefined',
    );
    expect(problemOf(() => complete({ limit: 1 })).code).toBe('RL_INVALID_DURATION');
  });

  it('says what was expected and what came', () => {
    const { message } = problemOf(() => complete({ limit: 'many', window: '1s' }));
    expect(message).toBe('RL_INVALID_LIMIT: policies.p.limit: expected a whole number ≥ 0, received "many"');
    const unknown = problemOf(() => complete({ limit: 1, window: '1s', windowMs: 3 }));
    expect(unknown.message).toContain('expected one of name, limit, window');
    expect(unknown.received).toBe('"windowMs"');
  });

  it.each([null, undefined, 5, 'x', []])('refuses %j in place of options', (options) => {
    expect(problemOf(() => complete(options)).code).toBeDefined();
  });

  it('takes text for numbers, and units for durations', () => {
    expect(complete({ limit: '10', window: ' 60000 ', cost: '2', block: '1.5m' })).toMatchObject({
      limit: 10,
      windowMs: 60_000,
      cost: 2,
      blockMs: 90_000,
    });
    for (const [window, ms] of [
      ['250ms', 250],
      ['10s', 1e4],
      ['1m', 6e4],
      ['2h', 72e5],
      ['30d', 2_592e6],
    ] as const) {
      expect(complete({ limit: 1, window }).windowMs).toBe(ms);
    }
  });

  it('completes what was left out', () => {
    expect(complete({ limit: 10, window: '1s' })).toMatchObject({
      algorithm: 'sliding-window-counter',
      burst: 10,
      maxDelayMs: Infinity,
      key: undefined,
      cost: 1,
      blockMs: 0,
      mode: 'enforce',
      enforceAt: 'guard',
      onUnavailable: 'fallback',
    });
    expect(complete({ limit: 10, window: '1s', key: ['ip', 'user'] }).enforceAt).toBe('interceptor');
    expect(complete({ limit: 10, window: '1s', key: 'user', enforceAt: 'guard' }).enforceAt).toBe('guard');
  });

  it.each([
    [10, '1s', 10],
    [10, '10s', 1],
    [600, '1m', 10],
    [1, '1d', 1],
  ])('gives a leaky bucket of %i per %s room for %i', (limit, window, burst) => {
    expect(complete({ limit, window, algorithm: 'leaky-bucket' }).burst).toBe(burst);
  });

  it('tells of options that have no effect', () => {
    const told: Diagnostic[] = [];
    complete({ limit: 1, window: '1s', algorithm: 'fixed-window', burst: 3, maxDelay: '1s' }, told);
    expect(told.map(({ code }) => code)).toEqual(['RL_OPTION_HAS_NO_EFFECT', 'RL_OPTION_HAS_NO_EFFECT']);
    told.length = 0;
    complete({ limit: 1, window: '1s', algorithm: 'leaky-bucket', burst: 3, maxDelay: '1s' }, told);
    expect(told).toEqual([]);
  });
});

describe("the module's options", () => {
  it.each<[string, object, string, string]>([
    ['an unknown option', { polices: {} }, 'RL_UNKNOWN_OPTION', 'polices'],
    ['an unknown option further in', { memory: { maxKey: 1 } }, 'RL_UNKNOWN_OPTION', 'memory.maxKey'],
    ['no room at all', { memory: { maxKeys: 0 } }, 'RL_INVALID_OPTION', 'memory.maxKeys'],
    ['an unknown driver', { driver: 'sql' }, 'RL_INVALID_OPTION', 'driver'],
    ['an unknown header format', { headers: ['new'] }, 'RL_INVALID_OPTION', 'headers'],
    ['a prefix over 128', { ipv6Prefix: 129 }, 'RL_INVALID_OPTION', 'ipv6Prefix'],
    [
      'a proxy that is none',
      { trustedProxies: '10.0.0.0/99' },
      'RL_INVALID_TRUSTED_PROXIES',
      'trustedProxies',
    ],
    ['a short secret', { hashKeys: 'short' }, 'RL_INVALID_OPTION', 'hashKeys'],
    ['observers that are none', { observers: ['me'] }, 'RL_INVALID_OPTION', 'observers.0'],
    ['a clock without hands', { clock: {} }, 'RL_INVALID_OPTION', 'clock'],
    ['text for yes', { registerGuard: 'yes' }, 'RL_INVALID_OPTION', 'registerGuard'],
    ['a prefix that decides the slot', { prefix: '{app}' }, 'RL_INVALID_NAME', 'prefix'],
    ['a hybrid option that is none', { hybrid: { timeout: 50 } }, 'RL_UNKNOWN_OPTION', 'hybrid.timeout'],
    ['no time to wait', { hybrid: { timeoutMs: 0 } }, 'RL_INVALID_OPTION', 'hybrid.timeoutMs'],
    ['an unknown fallback', { hybrid: { fallback: 'half' } }, 'RL_INVALID_OPTION', 'hybrid.fallback'],
    [
      'less than one instance',
      { hybrid: { expectedInstances: 0 } },
      'RL_INVALID_OPTION',
      'hybrid.expectedInstances',
    ],
    ['a source that is none', { sources: [{ name: 'x' }] }, 'RL_INVALID_OPTION', 'sources.0'],
  ])('refuse %s', (_title, wrong, code, path) => {
    expect(problemOf(() => completeOptions(wrong as never))).toMatchObject({ code, path });
  });
});

describe('the builder', () => {
  it.each<[string, () => unknown, string]>([
    ['hybrid without a Redis', () => limiterBuilder().driver('hybrid').build(), 'RL_INVALID_OPTION'],
    ['hybrid options', () => limiterBuilder().hybrid({ coolOffMs: -1 }).build(), 'RL_INVALID_OPTION'],
    ['a name with a line break', () => limiterBuilder().name('a\r\nb').build(), 'RL_INVALID_NAME'],
    ['a limit that is none', () => limiterBuilder().limit(-5).build(), 'RL_INVALID_LIMIT'],
  ])('refuses %s', (_title, run, code) => {
    expect(problemOf(run).code).toBe(code);
  });
});

describe('calls', () => {
  const limiter = limiterBuilder().limit(10).build();
  afterAll(() => limiter.close());

  it.each([0, -1, 1.5, NaN, Infinity, '2', null])(
    'refuse a cost of %p, and consume nothing',
    async (cost) => {
      const options = { cost: cost as number };
      if (cost !== null) {
        await expect(limiter.consume('a', options)).rejects.toMatchObject({ code: 'RL_INVALID_COST' });
        expect(() => limiter.tryAcquireSync('a', cost as number)).toThrow('RL_INVALID_COST');
      }
      expect((await limiter.peek('a')).remaining).toBe(10);
    },
  );

  it.each(['', 5, {}])('refuse the subject %p', async (subject) => {
    await expect(limiter.consume(subject as string)).rejects.toMatchObject({ code: 'RL_INVALID_SUBJECT' });
  });
});
