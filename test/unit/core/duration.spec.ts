import fc from 'fast-check';
import { parseDuration } from '../../../lib/core/duration.js';
import { growth } from '../../support/growth.js';

describe('parseDuration', () => {
  it.each([
    ['250ms', 250],
    ['10s', 10_000],
    ['1m', 60_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['0s', 0],
    // a number of milliseconds, also as the environment gives it
    [0, 0],
    [60_000, 60_000],
    ['60000', 60_000],
    ['007', 7],
    // fractions of a unit that are whole milliseconds, in decimal arithmetic
    ['1.5s', 1_500],
    ['0.5m', 30_000],
    ['1.1s', 1_100],
    ['8.05s', 8_050],
    ['1.001s', 1_001],
    ['2.675s', 2_675],
    ['1.0ms', 1],
    // space
    [' 10s ', 10_000],
    ['10 s', 10_000],
    ['10s\n', 10_000],
    // the edge of whole numbers
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('%j is %d', (value, expected) => {
    expect(parseDuration(value)).toBe(expected);
  });

  it.each([
    // no whole milliseconds
    [1.5],
    ['1.5'],
    ['1.5ms'],
    ['0.0001s'],
    // no amount of time
    [-1],
    ['-1s'],
    ['+1s'],
    [NaN],
    [Infinity],
    ['Infinity'],
    ['NaN'],
    // beyond 2^53
    [2 ** 53],
    ['9007199254740992'],
    ['9999999999999999d'],
    ['99999999999999999'],
    // not this notation
    [''],
    [' '],
    ['s'],
    ['ms'],
    ['10 seconds'],
    ['10S'],
    ['1M'],
    ['1w'],
    ['1h30m'],
    ['1,5s'],
    ['.5s'],
    ['1.s'],
    ['1e3'],
    ['0x10'],
    ['1_000'],
    ['１０s'],
    ['10sec'],
    ['10s 5'],
    ['\u00001s'],
    // not text, not a number
    [undefined],
    [null],
    [true],
    [10n],
    [['10s']],
    [{ ms: 10 }],
    [new Date(0)],
  ])('%p stands for none', (value) => {
    expect(parseDuration(value)).toBeUndefined();
  });

  it('reads every unit as so many of the next smaller one', () => {
    fc.assert(
      fc.property(fc.nat(10_000), (amount) => {
        expect(parseDuration(`${amount}d`)).toBe(parseDuration(`${amount * 24}h`));
        expect(parseDuration(`${amount}h`)).toBe(parseDuration(`${amount * 60}m`));
        expect(parseDuration(`${amount}m`)).toBe(parseDuration(`${amount * 60}s`));
        expect(parseDuration(`${amount}s`)).toBe(parseDuration(`${amount * 1_000}ms`));
        expect(parseDuration(`${amount}ms`)).toBe(parseDuration(amount));
      }),
      { seed: 1 },
    );
  });

  it('reads thousandths of a second exactly', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), (ms) => {
        const text = `${Math.floor(ms / 1_000)}.${String(ms % 1_000).padStart(3, '0')}s`;
        expect(parseDuration(text)).toBe(ms);
      }),
      { seed: 1 },
    );
  });

  it.each([
    ['', '9'],
    ['', ' '],
    ['1.', '0'],
    ['', '1s'],
    ['1', ' '],
  ])('takes time linear in the length of any text: %j and many %j', (start, part) => {
    const read = (length: number) => expect(parseDuration(`${start}${part.repeat(length)}x`)).toBeUndefined();
    expect(growth(read)).toBeLessThan(32);
  });

  it('takes any value without an exception', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const ms = parseDuration(value);
        expect(ms === undefined || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
      { seed: 1 },
    );
  });
});
