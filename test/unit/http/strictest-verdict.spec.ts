import { strictestVerdict } from '../../../lib/core/verdict.js';
import { denied, verdict } from './verdicts.js';

describe('strictestVerdict', () => {
  it.each([
    [
      'a denied one before allowed ones',
      verdict({ remaining: 0, resetAfterMs: 9e9 }),
      denied({ retryAfterMs: 1 }),
    ],
    [
      'the longest wait among denied ones',
      denied({ retryAfterMs: 5 }),
      denied({ retryAfterMs: 6, remaining: 4 }),
    ],
    ['no end of waiting', denied({ retryAfterMs: 9e15 }), denied({ retryAfterMs: Infinity })],
    [
      'the least remaining',
      verdict({ remaining: 2, resetAfterMs: 9 }),
      verdict({ remaining: 1, resetAfterMs: 1 }),
    ],
    ['then the longest reset', verdict({ resetAfterMs: 1 }), verdict({ resetAfterMs: 2 })],
  ])('is %s', (_rule, other, expected) => {
    expect(strictestVerdict([other, expected])).toBe(expected);
    expect(strictestVerdict([expected, other])).toBe(expected);
    expect(strictestVerdict([other, expected, other])).toBe(expected);
  });

  it('is the first of equals, and nothing of nothing', () => {
    const first = denied();
    expect(strictestVerdict([first, denied()])).toBe(first);
    expect(strictestVerdict([])).toBeUndefined();
  });
});
