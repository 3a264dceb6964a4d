import { no, ok, type Scenario } from '../support/run-vectors.js';

// In units of 1/window: used = previous × (window − elapsed) + current × window, allowed up to limit × window.
export const slidingWindowCounter: readonly Scenario[] = [
  {
    title: 'weighs the previous window by what a sliding one still covers',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 10, expect: ok(0, 2_000) }, //       current 10; counts until 2000
      { at: 0, expect: no(0, 1_100, 2_000) }, //          0 + 2000 - ⌊9 × 1000 / 10⌋ = 1100
      { at: 1_099, expect: no(0, 1, 901) }, //            10 × 901 + 1000 = 10010 > 10000; left ⌊0.99⌋; gone at 2000
      { at: 1_100, expect: ok(0, 1_900) }, //             10 × 900 + 1000 = 10000; counts until 3000
      { at: 1_500, cost: 4, expect: ok(0, 1_500) }, //    10 × 500 + 5 × 1000 = 10000
      { at: 1_500, expect: no(0, 100, 1_500) }, //        1000 + 1000 - ⌊4 × 1000 / 10⌋ = 1600
      { at: 1_599, expect: no(0, 1, 1_401) }, //          10 × 401 + 6000 = 10010
      { at: 1_600, expect: ok(0, 1_400) }, //             10 × 400 + 6000 = 10000
    ],
  },
  {
    title: 'lifts a denial exactly where weights are no whole milliseconds',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 500, cost: 3, expect: ok(0, 1_500) },
      { at: 500, expect: no(0, 834, 1_500) }, //          2000 - ⌊2000 / 3⌋ = 1334
      { at: 1_333, expect: no(0, 1, 667) }, //            3 × 667 + 1000 = 3001 > 3000
      { at: 1_334, expect: ok(0, 1_666) }, //             3 × 666 + 1000 = 2998; left ⌊0.002⌋
      { at: 1_334, cost: 2, expect: no(0, 666, 1_666) }, // current 1 + 2 = 3: only when previous weighs 0, at 2000
      { at: 1_999, cost: 2, expect: no(1, 1, 1_001) }, //  3 × 1 + 1000 + 2000 = 3003; left ⌊1.997⌋
      { at: 2_000, cost: 2, expect: ok(0, 2_000) }, //     1 × 1000 + 2000 = 3000; counts until 4000
    ],
  },
  {
    title: 'remembers a window for exactly one more',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 5, expect: ok(0, 2_000) },
      { at: 1_999, do: 'peek', expect: ok(4, 1) }, //     5 × 1 of 5000 used
      { at: 1_999, cost: 5, expect: no(4, 1, 1) }, //     5 + 5000 > 5000
      { at: 2_000, do: 'peek', expect: ok(5, 0) },
      { at: 2_000, cost: 5, expect: ok(0, 2_000) },
      { at: 9_000, cost: 6, expect: no(5, Infinity, 0) },
      { at: 9_000, cost: 5, expect: ok(0, 2_000) }, //    idle saves nothing up
      { at: 9_000, expect: no(0, 1_200, 2_000) }, //      9000 + 2000 - ⌊4 × 1000 / 5⌋ = 10200
    ],
  },
  {
    title: 'lets at most twice the limit through in a span of one window',
    quota: { limit: 100, window: 1_000 },
    steps: [
      { at: 999, cost: 100, expect: ok(0, 1_001) },
      { at: 1_998, cost: 99, expect: ok(0, 1_002) }, //   100 × 2 + 99000 = 99200: 199 within 1000 ms
      { at: 1_998, expect: no(0, 2, 1_002) }, //          99 + 1 = 100: when previous weighs 0, at 2000
    ],
  },
  {
    title: 'weighs costs; a denial takes nothing; a cost over the limit can never pass',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 11, expect: no(10, Infinity, 0) },
      { at: 100, cost: 8, expect: ok(2, 1_900) },
      { at: 100, cost: 5, expect: no(2, 1_275, 1_900) }, // 2000 - ⌊5 × 1000 / 8⌋ = 1375
      { at: 100, cost: 2, expect: ok(0, 1_900) },
      { at: 100, cost: 11, expect: no(0, Infinity, 1_900) },
      { at: 1_000, expect: no(0, 100, 1_000) }, //          previous 10 × 1000; 2000 - ⌊9000 / 10⌋ = 1100
    ],
  },
  {
    title: 'never goes back in time',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 1_500, expect: ok(1, 1_500) }, //             [1000, 2000): 1; counts until 3000
      { at: 900, expect: ok(0, 2_100) }, //               counted at 1000
      { at: 900, expect: no(0, 1_600, 2_100) }, //        1000 + 2000 - ⌊1 × 1000 / 2⌋ = 2500
      { at: 2_499, expect: no(0, 1, 501) }, //            2 × 501 + 1000 = 2002 > 2000
      { at: 2_500, expect: ok(0, 1_500) }, //             2 × 500 + 1000 = 2000
    ],
  },
  {
    title: 'keeps a window that begins exactly a minute ahead of the clock',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 2_000) },
      { at: 40_000, expect: ok(0, 62_000) }, //           100000 = 40000 + 60000: kept; counts until 102000
      { at: 40_000, expect: no(0, 61_500, 62_000) }, //   102000 - ⌊1 × 1000 / 2⌋ = 101500
    ],
  },
  {
    title: 'sets a window further ahead back to now, and keeps what was used',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 2_000) },
      { at: 39_999, expect: ok(0, 1_001) }, //            100000 > 99999: now [39000, 40000), 2; until 41000
      { at: 39_999, expect: no(0, 501, 1_001) }, //       39000 + 2000 - 500 = 40500
      { at: 40_499, expect: no(0, 1, 501) }, //           2 × 501 + 1000 = 2002
      { at: 40_500, expect: ok(0, 1_500) }, //            2 × 500 + 1000 = 2000
    ],
  },
  {
    title: 'a clock that jumped does not lock a full subject for good',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 200_000, cost: 2, expect: ok(0, 2_000) },
      { at: 10_500, do: 'peek', expect: no(0, 1_000, 1_500) },
      { at: 10_500, expect: no(0, 1_000, 1_500) }, //     [10000, 11000) with 2; 12000 - 500 = 11500
      { at: 11_499, expect: no(0, 1, 501) },
      { at: 11_500, expect: ok(0, 1_500) },
    ],
  },
  {
    title: 'a clock that jumped while the window changed: the estimate of the moment is kept',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 199_500, cost: 4, expect: ok(0, 1_500) }, //                 [199000, 200000): 4
      { at: 200_500, expect: ok(1, 1_500) }, //                          4 × 500 + 1000 = 3000; previous 4, current 1
      // back in [12000, 13000): ⌈4 × 750 / 1000⌉ + 1 = 4 in [10000, 20000); 30000 - ⌊3 × 10000 / 4⌋ = 22500
      { at: 12_250, quota: { window: 10_000 }, expect: no(0, 10_250, 17_750) },
      { at: 22_499, expect: no(0, 1, 7_501) }, //                        4 × 7501 + 10000 = 40004 > 40000
      { at: 22_500, expect: ok(0, 17_500) },
    ],
  },
  {
    title: 'follows a limit that is lowered, raised, and set to nothing',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(0, 2_000) },
      { at: 0, quota: { limit: 2 }, expect: no(0, 1_750, 2_000) }, //  2000 - ⌊1 × 1000 / 4⌋
      { at: 1_749, expect: no(0, 1, 251) }, //                         4 × 251 + 1000 = 2004 > 2000
      { at: 1_750, expect: ok(0, 1_250) }, //                          4 × 250 + 1000 = 2000
      { at: 1_750, quota: { limit: 8 }, cost: 6, expect: ok(0, 1_250) }, // 4 × 250 + 7 × 1000 = 8000
      { at: 1_750, quota: { limit: 0 }, expect: no(0, Infinity, 1_250) },
    ],
  },
  {
    title: 'limit 0 denies the first call',
    quota: { limit: 0, window: 1_000 },
    steps: [
      { at: 0, expect: no(0, Infinity, 0) },
      { at: 5_000, do: 'peek', expect: no(0, Infinity, 0) },
    ],
  },
  {
    title: 'carries the estimate of the moment into a window of another length',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(0, 2_000) },
      { at: 1_500, quota: { window: 10_000 }, expect: ok(1, 18_500) }, //  ⌈4 × 500 / 1000⌉ + 1 = 3 in [0, 10000)
      { at: 5_500, quota: { window: 1_000 }, expect: ok(0, 1_500) }, //    3 + 1 = 4 in [5000, 6000); until 7000
      { at: 5_600, quota: { window: 2_000 }, expect: no(0, 900, 2_400) }, // [4000, 6000): 8000 - ⌊3 × 2000 / 4⌋ = 6500
      { at: 6_499, expect: no(0, 1, 1_501) }, //                           4 × 1501 + 2000 = 8004 > 8000
      { at: 6_500, expect: ok(0, 3_500) }, //                              4 × 1500 + 2000 = 8000; until 10000
    ],
  },
  {
    title: 'carries over at the stored time where the clock is behind',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 1_500, cost: 2, expect: ok(1, 1_500) }, //                     [1000, 2000)
      { at: 900, quota: { window: 500 }, expect: ok(0, 1_100) }, //        [1000, 1500): 3; until 2000
    ],
  },
  {
    title: 'rounds what is carried over up',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 0, expect: ok(1, 2_000) },
      { at: 1_999, quota: { window: 10_000 }, expect: ok(0, 18_001) }, //  ⌈1 × 1 / 1000⌉ + 1 = 2 in [0, 10000)
      { at: 1_999, expect: no(0, 13_001, 18_001) }, //                     20000 - ⌊1 × 10000 / 2⌋ = 15000
    ],
  },
  {
    title: 'refunds to the window that was charged, while it counts',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 100, cost: 2, as: 'a', expect: ok(2, 1_900) },
      { at: 200, as: 'b', expect: ok(1, 1_800) },
      { at: 300, do: 'refund', of: 'a' }, //              current 3 - 2
      { at: 300, do: 'peek', expect: ok(3, 1_700) },
      { at: 1_200, as: 'c', expect: ok(2, 1_800) }, //    1 × 800 + 1000 = 1800, left ⌊2.2⌋
      { at: 1_300, do: 'refund', of: 'b' }, //            previous 1 - 1
      { at: 1_300, do: 'peek', expect: ok(3, 1_700) },
      { at: 3_100, expect: ok(3, 1_900) }, //             everything older is gone
      { at: 3_100, do: 'refund', of: 'c' },
      { at: 3_100, do: 'peek', expect: ok(3, 1_900) },
      { at: 3_200, do: 'giveBack', cost: 5 },
      { at: 3_200, do: 'peek', expect: ok(4, 0) },
      { at: 3_300, expect: ok(3, 1_700) },
      { at: 4_000, do: 'giveBack', cost: 1 }, //          nothing used in [4000, 5000)
      { at: 4_000, do: 'peek', expect: ok(3, 1_000) }, // previous 1 × 1000
    ],
  },
  {
    title: 'refunds nothing of a window of another length',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 500, as: 'a', expect: ok(3, 1_500) }, //                       [0, 1000)
      { at: 2_000, quota: { window: 10_000 }, expect: ok(3, 18_000) }, //  a no longer counts; [0, 10000): 1
      { at: 2_000, do: 'refund', of: 'a' },
      { at: 2_000, do: 'peek', expect: ok(3, 18_000) },
    ],
  },
  {
    title: 'gives back to the running window, also before the next charge counts in the new length',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 500, cost: 2, expect: ok(2, 1_500) },
      { at: 1_500, cost: 2, expect: ok(1, 1_500) }, //                  2 × 500 + 2000 = 3000, left 1
      { at: 1_500, quota: { window: 10_000 }, do: 'giveBack', cost: 1 }, // current 2 - 1
      { at: 1_500, quota: { window: 1_000 }, do: 'peek', expect: ok(2, 1_500) }, // 1000 + 1000
    ],
  },
];
