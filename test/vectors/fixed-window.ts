import { no, ok, type Scenario } from '../support/run-vectors.js';

// Windows are aligned: [0, 1000), [1000, 2000) … A window's count is dropped at its end.
export const fixedWindow: readonly Scenario[] = [
  {
    title: 'counts to the limit, starts afresh at the end of the window',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 200, expect: ok(2, 800) }, //    1 of 3; ends at 1000
      { at: 200, expect: ok(1, 800) }, //    2 of 3
      { at: 999, expect: ok(0, 1) }, //      3 of 3
      { at: 999, expect: no(0, 1, 1) }, //   4 > 3
      { at: 1_000, expect: ok(2, 1_000) }, // [1000, 2000): 1 of 3
    ],
  },
  {
    title: 'is exact to the millisecond on both sides of a boundary',
    quota: { limit: 1, window: 1_000 },
    steps: [
      { at: 0, expect: ok(0, 1_000) }, //         1 of 1
      { at: 1, expect: no(0, 999, 999) }, //      1000 - 1
      { at: 999, expect: no(0, 1, 1) }, //        1000 - 999
      { at: 1_000, expect: ok(0, 1_000) },
      { at: 1_001, expect: no(0, 999, 999) },
      { at: 1_999, expect: no(0, 1, 1) },
      { at: 2_000, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'lets twice the limit through around a boundary',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 999, cost: 2, expect: ok(0, 1) },
      { at: 1_000, cost: 2, expect: ok(0, 1_000) },
      { at: 1_001, expect: no(0, 999, 999) },
    ],
  },
  {
    title: 'weighs costs; a denial takes nothing; a cost over the limit can never pass',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 11, expect: no(10, Infinity, 0) }, //   11 > 10 for ever; nothing used
      { at: 100, cost: 8, expect: ok(2, 900) }, //           8 of 10
      { at: 100, cost: 5, expect: no(2, 900, 900) }, //      13 > 10, still 8
      { at: 100, cost: 2, expect: ok(0, 900) }, //           10 of 10
      { at: 100, cost: 11, expect: no(0, Infinity, 900) },
      { at: 1_000, cost: 10, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'saves nothing up while idle',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 5, expect: ok(0, 1_000) },
      { at: 3_000, do: 'peek', expect: ok(5, 0) },
      { at: 3_000, cost: 6, expect: no(5, Infinity, 0) },
      { at: 3_000, cost: 5, expect: ok(0, 1_000) },
      { at: 3_000, expect: no(0, 1_000, 1_000) },
    ],
  },
  {
    title: 'never goes back in time: the window of a later clock goes on counting',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 1_500, expect: ok(1, 500) }, //             [1000, 2000): 1
      { at: 900, expect: ok(0, 1_100) }, //             counted at 1000, in the same window; ends at 2000
      { at: 900, expect: no(0, 1_100, 1_100) },
      { at: 1_999, expect: no(0, 1, 1) },
      { at: 2_000, expect: ok(1, 1_000) },
    ],
  },
  {
    title: 'keeps a window that begins exactly a minute ahead of the clock',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 1_000) },
      { at: 40_000, expect: ok(0, 61_000) }, //         100000 = 40000 + 60000: kept; ends at 101000
      { at: 40_000, expect: no(0, 61_000, 61_000) },
    ],
  },
  {
    title: 'sets a window further ahead back to now, and keeps what was used',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 1_000) },
      { at: 39_999, expect: ok(0, 1) }, //              100000 > 99999: now [39000, 40000), 1 + 1 = 2
      { at: 39_999, expect: no(0, 1, 1) },
      { at: 40_000, expect: ok(1, 1_000) },
    ],
  },
  {
    title: 'a clock that jumped does not lock a full subject for good',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 200_000, cost: 2, expect: ok(0, 1_000) },
      { at: 10_500, do: 'peek', expect: no(0, 500, 500) }, // looking moves nothing …
      { at: 10_500, expect: no(0, 500, 500) }, //             … a call does: [10000, 11000) with 2
      { at: 10_999, expect: no(0, 1, 1) },
      { at: 11_000, expect: ok(1, 1_000) },
    ],
  },
  {
    title: 'follows a limit that is lowered, raised, and set to nothing',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(1, 1_000) },
      { at: 100, quota: { limit: 3 }, expect: no(0, 900, 900) }, //    4 + 1 > 3
      { at: 200, quota: { limit: 6 }, cost: 2, expect: ok(0, 800) }, // 4 + 2 = 6
      { at: 300, quota: { limit: 0 }, expect: no(0, Infinity, 700) },
      { at: 1_000, expect: no(0, Infinity, 0) }, //                    a window with nothing used
      { at: 1_000, quota: { limit: 2 }, expect: ok(1, 1_000) },
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
    title: 'carries what a running window has used into a window of another length',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 500, cost: 2, expect: ok(1, 500) },
      { at: 600, quota: { window: 10_000 }, expect: ok(0, 9_400) }, //     [0, 10000): 2 + 1
      { at: 600, expect: no(0, 9_400, 9_400) },
      { at: 5_000, quota: { window: 2_000 }, expect: no(0, 1_000, 1_000) }, // [4000, 6000) with 3, also by a denial
      { at: 5_999, expect: no(0, 1, 1) },
      { at: 6_000, expect: ok(2, 2_000) },
    ],
  },
  {
    title: 'a denial in a longer window keeps what was used until that window ends',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 500, cost: 2, expect: ok(0, 500) },
      { at: 600, quota: { window: 10_000 }, expect: no(0, 9_400, 9_400) }, // [0, 10000)
      { at: 9_999, expect: no(0, 1, 1) },
      { at: 10_000, expect: ok(1, 10_000) },
    ],
  },
  {
    title: 'carries over at the stored time where the clock is behind',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 1_500, cost: 2, expect: ok(1, 500) }, //                     [1000, 2000)
      { at: 900, quota: { window: 500 }, expect: ok(0, 600) }, //        [1000, 1500): 3
    ],
  },
  {
    title: 'carries nothing over from a window that has ended',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 500, cost: 3, expect: ok(0, 500) },
      { at: 1_000, quota: { window: 10_000 }, expect: ok(2, 9_000) }, // [0, 10000): 1
    ],
  },
  {
    title: 'refunds while the window lasts',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 100, as: 'a', expect: ok(2, 900) },
      { at: 200, as: 'b', expect: ok(1, 800) },
      { at: 300, do: 'refund', of: 'a' }, //            2 - 1 = 1
      { at: 300, do: 'peek', expect: ok(2, 700) },
      { at: 1_100, expect: ok(2, 900) }, //             [1000, 2000): 1
      { at: 1_200, do: 'refund', of: 'b' }, //          b's window has ended
      { at: 1_200, do: 'peek', expect: ok(2, 800) },
      { at: 1_300, do: 'giveBack', cost: 5 }, //        1 - 5: nothing used
      { at: 1_300, do: 'peek', expect: ok(3, 0) },
      { at: 1_900, expect: ok(2, 100) },
      { at: 2_000, do: 'giveBack', cost: 1 }, //        nothing used in [2000, 3000)
      { at: 2_000, expect: ok(2, 1_000) },
    ],
  },
  {
    title: 'a charge of a window that ended is not refunded to a longer one with the same start',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 500, as: 'a', expect: ok(2, 500) }, //                          [0, 1000)
      { at: 1_500, quota: { window: 10_000 }, expect: ok(2, 8_500) }, //    [0, 10000)
      { at: 1_500, do: 'refund', of: 'a' },
      { at: 1_500, do: 'peek', expect: ok(2, 8_500) },
    ],
  },
];
