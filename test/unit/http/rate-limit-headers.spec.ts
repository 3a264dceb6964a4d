import fc from 'fast-check';
import type { Verdict } from '../../../lib/core/verdict.js';
import {
  createHeaderWriter,
  retryAfterSeconds,
  type HeaderFormat,
} from '../../../lib/http/rate-limit-headers.js';
import { denied, verdict } from './verdicts.js';

function written(formats: readonly HeaderFormat[], verdicts: readonly Verdict[], windowsMs = [60_000]) {
  const headers: Record<string, string> = {};
  createHeaderWriter(formats)(
    (name, value) => (headers[name] = value),
    verdicts,
    (index) => windowsMs[index] ?? NaN,
  );
  return headers;
}

describe('rate limit headers', () => {
  const login = verdict({ remaining: 3, resetAfterMs: 20_001 });

  it('ietf: one member a policy', () => {
    expect(written(['ietf'], [login])).toEqual({
      'RateLimit-Policy': '"login";q=5;w=60',
      RateLimit: '"login";r=3;t=21',
    });
    const daily = denied({ policy: 'daily', limit: 1000, resetAfterMs: 1000 });
    expect(written(['ietf'], [login, daily], [60_000, 86_400_000])).toEqual({
      'RateLimit-Policy': '"login";q=5;w=60, "daily";q=1000;w=86400',
      RateLimit: '"login";r=3;t=21, "daily";r=0;t=1',
    });
  });

  it('triple and legacy: the strictest verdict', () => {
    const verdicts = [
      login,
      verdict({ limit: 9, remaining: 2, resetAfterMs: 999 }),
      verdict({ remaining: 4 }),
    ];
    expect(written(['triple'], verdicts)).toEqual({
      'RateLimit-Limit': '9',
      'RateLimit-Remaining': '2',
      'RateLimit-Reset': '1',
    });
    expect(written(['legacy'], verdicts)).toEqual({
      'X-RateLimit-Limit': '9',
      'X-RateLimit-Remaining': '2',
      'X-RateLimit-Reset': '1',
    });
  });

  it('writes every format that is asked for, and nothing for none', () => {
    expect(Object.keys(written(['ietf', 'triple', 'legacy'], [login]))).toHaveLength(8);
    expect(written([], [login])).toEqual({});
    expect(written([], [login])).toEqual({});
    expect(written(['ietf', 'triple', 'legacy'], [])).toEqual({});
  });

  it.each([
    [0, '"login";r=5;t=0'],
    [1, '"login";r=5;t=1'],
    [1000, '"login";r=5;t=1'],
    [1001, '"login";r=5;t=2'],
    [Infinity, '"login";r=5'],
    [1e300, '"login";r=5;t=999999999999999'],
  ])('t of %d ms: %s', (resetAfterMs, expected) => {
    expect(written(['ietf'], [verdict({ resetAfterMs })])).toMatchObject({ RateLimit: expected });
  });

  it('leaves out the reset of a quota that never comes back', () => {
    expect(written(['triple'], [verdict({ resetAfterMs: Infinity })])).not.toHaveProperty('RateLimit-Reset');
  });

  it.each([
    [1, 1],
    [250, 1],
    [1000, 1],
    [1001, 2],
    [1e300, 999_999_999_999_999],
  ])('a window of %d ms has w=%d', (windowMs, seconds) => {
    expect(written(['ietf'], [login], [windowMs])).toMatchObject({
      'RateLimit-Policy': `"login";q=5;w=${seconds}`,
    });
  });

  it('cuts counts to what a structured field can carry', () => {
    const huge = verdict({ limit: Number.MAX_SAFE_INTEGER, remaining: 1e15 });
    expect(written(['ietf'], [huge])).toEqual({
      'RateLimit-Policy': '"login";q=999999999999999;w=60',
      RateLimit: '"login";r=999999999999999;t=0',
    });
    expect(written(['triple'], [huge])).toMatchObject({ 'RateLimit-Limit': '999999999999999' });
  });

  it.each([
    ['a"b', '"a\\"b"'],
    ['a\\b', '"a\\\\b"'],
    ['', '""'],
    ['a b;c=d, e', '"a b;c=d, e"'],
    ['a\r\nSet-Cookie: x', '"a%0D%0ASet-Cookie: x"'],
    ['\0\x7f', '"%00%7F"'],
    ['anmeldung-ä', '"anmeldung-%C3%A4"'],
    ['😀', '"%F0%9F%98%80"'],
    ['\ud83d', '"%EF%BF%BD"'],
  ])('quotes the policy name %j', (policy, quoted) => {
    expect(written(['ietf'], [verdict({ policy })])).toEqual({
      'RateLimit-Policy': `${quoted};q=5;w=60`,
      RateLimit: `${quoted};r=5;t=0`,
    });
  });

  it('lets no name out of its string', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (policy) =>
        /^"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*";q=5;w=60$/.test(
          written(['ietf'], [verdict({ policy })])['RateLimit-Policy']!,
        ),
      ),
      { numRuns: 20_000 },
    );
  });

  it('follows a policy whose limit or window changes', () => {
    const write = createHeaderWriter(['ietf']);
    const policyOf = (limit: number, windowMs: number) => {
      let policy = '';
      write(
        (name, value) => name === 'RateLimit-Policy' && (policy = value),
        [verdict({ limit })],
        () => windowMs,
      );
      return policy;
    };
    expect(policyOf(5, 1000)).toBe('"login";q=5;w=1');
    expect(policyOf(6, 1000)).toBe('"login";q=6;w=1');
    expect(policyOf(6, 2000)).toBe('"login";q=6;w=2');
    expect(policyOf(5, 1000)).toBe('"login";q=5;w=1');
  });
});

describe('retryAfterSeconds', () => {
  it.each<[string, Verdict[], number | undefined]>([
    ['nothing', [], undefined],
    ['nothing denied', [verdict()], undefined],
    ['rounded up', [denied({ retryAfterMs: 20_001 })], 21],
    ['whole', [denied({ retryAfterMs: 20_000 })], 20],
    ['at least one', [denied({ retryAfterMs: 1 })], 1],
    ['never zero', [denied({ retryAfterMs: 0 })], 1],
    ['the longest', [denied({ retryAfterMs: 5000 }), verdict(), denied({ retryAfterMs: 9000 })], 9],
    ['never', [denied({ retryAfterMs: 5000 }), denied({ retryAfterMs: Infinity })], undefined],
    ['beyond all bounds', [denied({ retryAfterMs: 1e300 })], 999_999_999_999_999],
  ])('%s', (_case, verdicts, expected) => {
    expect(retryAfterSeconds(verdicts)).toBe(expected);
  });
});
