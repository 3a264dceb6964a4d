import { no, ok, type Scenario } from '../support/run-vectors.js';

// In units of 1/window: a charge weighs cost × window, a millisecond drains limit, up to burst × window fit.
export const tokenBucket: readonly Scenario[] = [
  {
    title: 'lets a burst through, then the rate',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 10, expect: ok(0, 1_000) }, //       10000 used; 10000 / 10
      { at: 0, expect: no(0, 100, 1_000) }, //            1000 too many; 1000 / 10
      { at: 99, expect: no(0, 1, 901) }, //               10000 - 990 = 9010; 10 too many; left ⌊0.99⌋
      { at: 100, expect: ok(0, 1_000) }, //               9000 + 1000
      { at: 150, do: 'peek', expect: no(0, 50, 950) }, // 9500; 500 too many
      { at: 299, cost: 2, expect: no(1, 1, 801) }, //     10000 - 1990 = 8010; 10 too many; left ⌊1.99⌋
      { at: 300, cost: 2, expect: ok(0, 1_000) }, //      8000 + 2000
    ],
  },
  {
    title: 'a burst below the limit',
    quota: { limit: 5, window: 1_000, burst: 2 },
    steps: [
      { at: 0, expect: ok(1, 200) }, //                   1000 / 5
      { at: 0, expect: ok(0, 400) },
      { at: 0, expect: no(0, 200, 400) },
      { at: 199, expect: no(0, 1, 201) }, //              2000 - 995 = 1005; 5 too many
      { at: 200, expect: ok(0, 400) },
      { at: 200, cost: 3, expect: no(0, Infinity, 400) }, // 3 > 2 for ever
      { at: 600, cost: 2, expect: ok(0, 400) },
    ],
  },
  {
    title: 'a burst above the limit: burst + limit in a span of one window',
    quota: { limit: 2, window: 1_000, burst: 4 },
    steps: [
      { at: 0, cost: 4, expect: ok(0, 2_000) }, //        4000 / 2
      { at: 0, expect: no(0, 500, 2_000) },
      { at: 500, expect: ok(0, 2_000) }, //               4000 - 1000 + 1000
      { at: 1_000, expect: ok(0, 2_000) }, //             six within [0, 1000]
      { at: 1_000, expect: no(0, 500, 2_000) },
    ],
  },
  {
    title: 'lifts a denial exactly where the rate is no whole number of milliseconds',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 0, cost: 3, expect: ok(0, 1_000) },
      { at: 0, expect: no(0, 334, 1_000) }, //            ⌈1000 / 3⌉
      { at: 333, expect: no(0, 1, 667) }, //              3000 - 999 = 2001; 1 too many
      { at: 334, expect: ok(0, 1_000) }, //               1998 + 1000 = 2998; ⌈2998 / 3⌉
      { at: 666, expect: no(0, 1, 668) }, //              2998 - 996 = 2002; 2 too many; ⌈667.3⌉
      { at: 667, expect: ok(0, 1_000) }, //               1999 + 1000 = 2999
      { at: 1_000, expect: ok(0, 1_000) }, //             2999 - 999 + 1000 = 3000: nothing lost in a whole window
    ],
  },
  {
    title: 'one a second, asked again after 200 ms, waits 800',
    quota: { limit: 1, window: 1_000 },
    steps: [
      { at: 0, expect: ok(0, 1_000) },
      { at: 200, expect: no(0, 800, 800) },
      { at: 999, expect: no(0, 1, 1) },
      { at: 1_000, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'exactly the burst passes after any idle time',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 5, expect: ok(0, 1_000) },
      { at: 2_000, cost: 6, expect: no(5, Infinity, 0) },
      { at: 2_000, expect: ok(4, 200) },
      { at: 2_000, expect: ok(3, 400) },
      { at: 2_000, expect: ok(2, 600) },
      { at: 2_000, expect: ok(1, 800) },
      { at: 2_000, expect: ok(0, 1_000) },
      { at: 2_000, expect: no(0, 200, 1_000) },
    ],
  },
  {
    title: 'a denial takes nothing',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 8, expect: ok(2, 800) },
      { at: 0, cost: 5, expect: no(2, 300, 800) }, //     3000 too many
      { at: 0, cost: 11, expect: no(2, Infinity, 800) },
      { at: 0, cost: 2, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'never goes back in time: an earlier clock drains nothing',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 1_000, cost: 2, expect: ok(0, 1_000) },
      { at: 500, expect: no(0, 1_000, 1_500) }, //        500 until 1000, then 1000 / 2
      { at: 1_499, expect: no(0, 1, 501) }, //            2000 - 998 = 1002
      { at: 1_500, expect: ok(0, 1_000) },
      { at: 1_400, expect: no(0, 600, 1_100) }, //        100 + 1000 / 2; 100 + 2000 / 2
      { at: 2_000, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'keeps a time exactly a minute ahead of the clock',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 500) },
      { at: 40_000, expect: ok(0, 61_000) }, //           60000 + 2000 / 2
      { at: 40_000, expect: no(0, 60_500, 61_000) },
    ],
  },
  {
    title: 'sets a time further ahead back to now, and keeps what was used',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 500) },
      { at: 39_999, expect: ok(0, 1_000) }, //            1000 + 1000 at 39999
      { at: 40_498, expect: no(0, 1, 501) },
      { at: 40_499, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'a clock that jumped does not lock a full subject for good',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 200_000, cost: 2, expect: ok(0, 1_000) },
      { at: 10_000, do: 'peek', expect: no(0, 500, 1_000) },
      { at: 10_000, expect: no(0, 500, 1_000) }, //       2000 at 10000, also by a denial
      { at: 10_499, expect: no(0, 1, 501) },
      { at: 10_500, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'follows a limit that is lowered, raised, and set to nothing',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 10, expect: ok(0, 1_000) },
      { at: 100, quota: { limit: 5 }, expect: no(0, 1_100, 1_900) }, //     10000 - 500 = 9500; 5500 too many
      { at: 1_199, expect: no(0, 1, 801) }, //                              10000 - 5995 = 4005
      { at: 1_200, expect: ok(0, 1_000) }, //                               4000 + 1000
      { at: 1_300, quota: { limit: 20 }, cost: 17, expect: ok(0, 1_000) }, // 5000 - 2000 + 17000
      { at: 1_300, quota: { limit: 0 }, expect: no(0, Infinity, 0) },
    ],
  },
  {
    title: 'limit 0 denies the first call',
    quota: { limit: 0, window: 1_000, burst: 3 },
    steps: [
      { at: 0, expect: no(0, Infinity, 0) },
      { at: 5_000, do: 'peek', expect: no(0, Infinity, 0) },
    ],
  },
  {
    title: 'keeps the share in use when the window changes',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 10, expect: ok(0, 1_000) },
      { at: 500, quota: { window: 2_000 }, cost: 2, expect: ok(0, 1_900) }, // 20000 - 5000 + 4000 = 19000
      { at: 500, quota: { window: 1_000 }, expect: no(0, 50, 950) }, //       9500; 500 too many
      { at: 549, expect: no(0, 1, 901) },
      { at: 550, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'rounds what is in use up when the window changes',
    quota: { limit: 1, window: 3, burst: 2 },
    steps: [
      { at: 0, expect: ok(1, 3) }, //                              3
      { at: 1, quota: { window: 2 }, expect: ok(0, 3) }, //        3 × 2 / 3 - 1 + 2 = 3, left ⌊1 / 2⌋
      { at: 1, quota: { window: 5 }, expect: no(0, 3, 8) }, //     ⌈3 × 5 / 2⌉ = 8; 3 too many
      { at: 3, expect: no(0, 1, 6) }, //                           8 - 2 = 6; 1 too many
      { at: 4, expect: ok(0, 10) }, //                             5 + 5
    ],
  },
  {
    title: 'refunds the last charge first in, first out, an earlier one less what has drained since',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 4, as: 'a', expect: ok(6, 400) },
      { at: 0, cost: 3, as: 'b', expect: ok(3, 700) },
      { at: 100, do: 'refund', of: 'b' }, //              6000; the 1000 drained were a's: - 3000
      { at: 100, do: 'peek', expect: ok(7, 300) },
      { at: 200, do: 'refund', of: 'a' }, //              2000; 4000 - 2000 of a are left: nothing
      { at: 200, do: 'peek', expect: ok(10, 0) },
    ],
  },
  {
    title: 'refunds a charge that others followed less all that has drained since: it may have been theirs',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(6, 400) },
      { at: 0, cost: 3, as: 'b', expect: ok(3, 700) },
      { at: 500, cost: 2, expect: ok(6, 400) }, //        7000 - 5000 + 2000
      { at: 500, do: 'refund', of: 'b' }, //              5000 have drained, 3000 were charged: nothing is left of it
      { at: 500, do: 'peek', expect: ok(6, 400) },
    ],
  },
  {
    title: 'refunds by a clock that is behind: nothing has drained',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 1_000, expect: ok(1, 500) },
      { at: 1_000, as: 'b', expect: ok(0, 1_000) },
      { at: 500, do: 'refund', of: 'b' }, //              2000 - 1000, at 1000
      { at: 500, do: 'peek', expect: ok(1, 1_000) }, //   500 + 1000 / 2
      { at: 1_000, do: 'peek', expect: ok(1, 500) },
    ],
  },
  {
    title: 'rounds what is refunded down when the window has changed',
    quota: { limit: 1, window: 3, burst: 4 },
    steps: [
      { at: 0, as: 'a', expect: ok(3, 3) }, //            3
      { at: 0, cost: 2, expect: ok(1, 9) }, //            3 + 6
      { at: 1, quota: { window: 2 }, do: 'refund', of: 'a' }, // 9 × 2 / 3 - 1 = 5; of a 3 - ⌈1.5⌉ = 1, ⌊1 × 2 / 3⌋ = 0
      { at: 1, do: 'peek', expect: ok(1, 5) },
    ],
  },
  {
    title: 'refunds nothing of a charge that has drained; gives back no more than is used',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 2, as: 'a', expect: ok(8, 200) },
      { at: 300, expect: ok(9, 100) },
      { at: 300, do: 'refund', of: 'a' },
      { at: 300, do: 'peek', expect: ok(9, 100) },
      { at: 350, do: 'giveBack', cost: 3 }, //            500 - 3000
      { at: 350, do: 'peek', expect: ok(10, 0) },
      { at: 400, cost: 10, expect: ok(0, 1_000) },
    ],
  },
  {
    title: 'refunds in the units of the window of the moment',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 4, as: 'a', expect: ok(6, 400) },
      { at: 100, quota: { window: 2_000 }, do: 'refund', of: 'a' }, // 8000 - 1000; of a 3000, at the window of then,
      { at: 100, do: 'peek', expect: ok(9, 100) }, //                  which are 6000
    ],
  },
  {
    title: 'refunds nothing that a higher limit has drained meanwhile',
    quota: { limit: 1, window: 1_000, burst: 10 },
    steps: [
      { at: 0, cost: 5, as: 'a', expect: ok(5, 5_000) },
      { at: 500, quota: { limit: 10 }, cost: 5, expect: ok(5, 500) }, // 5000 - 500 × 10 = 0; + 5000
      { at: 500, do: 'refund', of: 'a' },
      { at: 500, do: 'peek', expect: ok(5, 500) },
    ],
  },
];
