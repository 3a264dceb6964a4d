import { no, ok, type Scenario } from '../support/run-vectors.js';

// A charge at time t counts in [t, t + window).
export const slidingWindowLog: readonly Scenario[] = [
  {
    title: 'forgets each charge one window later, to the millisecond',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 0, expect: ok(2, 1_000) },
      { at: 400, expect: ok(1, 1_000) },
      { at: 400, expect: ok(0, 1_000) },
      { at: 400, expect: no(0, 600, 1_000) }, //          the charge of 0 goes at 1000, the last of 400 at 1400
      { at: 999, expect: no(0, 1, 401) },
      { at: 1_000, expect: ok(0, 1_000) }, //             400: 2, 1000: 1
      { at: 1_000, expect: no(0, 400, 1_000) }, //        two go at 1400
      { at: 1_399, cost: 2, expect: no(0, 1, 601) },
      { at: 1_400, cost: 2, expect: ok(0, 1_000) }, //    1000: 1, 1400: 2
      { at: 1_400, expect: no(0, 600, 1_000) },
    ],
  },
  {
    title: 'weighs costs; a denial takes nothing; waits for as many charges to go as the cost needs',
    quota: { limit: 10, window: 1_000 },
    steps: [
      { at: 0, cost: 11, expect: no(10, Infinity, 0) },
      { at: 100, cost: 3, expect: ok(7, 1_000) },
      { at: 200, cost: 4, expect: ok(3, 1_000) },
      { at: 300, cost: 8, expect: no(3, 900, 900) }, //   5 too many: 3 go at 1100, 4 more at 1200
      { at: 300, cost: 5, expect: no(3, 800, 900) }, //   2 too many: 3 go at 1100
      { at: 300, cost: 6, expect: no(3, 800, 900) }, //   3 too many: exactly those 3
      { at: 300, cost: 11, expect: no(3, Infinity, 900) },
      { at: 1_099, cost: 5, expect: no(3, 1, 101) },
      { at: 1_100, cost: 5, expect: ok(1, 1_000) }, //    4 + 5
      { at: 1_199, cost: 5, expect: no(1, 1, 901) }, //   4 too many: 4 go at 1200
      { at: 1_200, cost: 5, expect: ok(0, 1_000) }, //    5 + 5
    ],
  },
  {
    title: 'saves nothing up while idle',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 5, expect: ok(0, 1_000) },
      { at: 10_000, do: 'peek', expect: ok(5, 0) },
      { at: 10_000, cost: 6, expect: no(5, Infinity, 0) },
      { at: 10_000, cost: 5, expect: ok(0, 1_000) },
      { at: 10_000, expect: no(0, 1_000, 1_000) },
    ],
  },
  {
    title: 'never goes back in time: an earlier clock counts at the newest charge',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 1_500, expect: ok(1, 1_000) },
      { at: 900, expect: ok(0, 1_600) }, //               counted at 1500, goes at 2500
      { at: 900, expect: no(0, 1_600, 1_600) },
      { at: 2_499, expect: no(0, 1, 1) },
      { at: 2_500, expect: ok(1, 1_000) },
    ],
  },
  {
    title: 'keeps a charge exactly a minute ahead of the clock',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 100_000, expect: ok(1, 1_000) },
      { at: 40_000, expect: ok(0, 61_000) }, //           counted at 100000
      { at: 40_000, expect: no(0, 61_000, 61_000) },
    ],
  },
  {
    title: 'sets charges further ahead back to now, and keeps what was used',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 99_900, expect: ok(2, 1_000) },
      { at: 100_000, expect: ok(1, 1_000) },
      { at: 39_999, expect: ok(0, 1_000) }, //            100000 > 99999: all three at 39999
      { at: 40_998, expect: no(0, 1, 1) },
      { at: 40_999, expect: ok(2, 1_000) },
    ],
  },
  {
    title: 'a clock that jumped does not lock a full subject for good',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 200_000, cost: 2, expect: ok(0, 1_000) },
      { at: 10_500, expect: no(0, 1_000, 1_000) }, //     both at 10500
      { at: 11_499, expect: no(0, 1, 1) },
      { at: 11_500, expect: ok(1, 1_000) },
    ],
  },
  {
    title: 'follows a limit that is lowered, raised, and set to nothing',
    quota: { limit: 5, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(1, 1_000) },
      { at: 100, expect: ok(0, 1_000) },
      { at: 200, quota: { limit: 2 }, expect: no(0, 800, 900) }, //    4 must go: those of 0, at 1000
      { at: 999, expect: no(0, 1, 101) },
      { at: 1_000, expect: ok(0, 1_000) }, //                          100: 1, 1000: 1
      { at: 1_000, quota: { limit: 4 }, cost: 2, expect: ok(0, 1_000) },
      { at: 1_000, quota: { limit: 0 }, expect: no(0, Infinity, 1_000) },
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
    title: 'counts every charge by the window of the moment',
    quota: { limit: 2, window: 1_000 },
    steps: [
      { at: 0, expect: ok(1, 1_000) },
      { at: 500, expect: ok(0, 1_000) },
      { at: 900, quota: { window: 3_000 }, expect: no(0, 2_100, 2_600) }, // 0 goes at 3000, 500 at 3500
      { at: 999, quota: { window: 500 }, expect: ok(0, 500) }, //            0 is gone, 500 goes at 1000
      { at: 999, expect: no(0, 1, 500) },
      { at: 1_000, expect: ok(0, 500) }, //                                  999: 1, 1000: 1
    ],
  },
  {
    title: 'refunds a charge while it counts',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 0, as: 'a', expect: ok(2, 1_000) },
      { at: 100, cost: 2, as: 'b', expect: ok(0, 1_000) },
      { at: 200, do: 'refund', of: 'a' },
      { at: 200, do: 'peek', expect: ok(1, 900) }, //     b goes at 1100
      { at: 300, as: 'c', expect: ok(0, 1_000) },
      { at: 400, do: 'refund', of: 'b' },
      { at: 400, do: 'peek', expect: ok(2, 900) }, //     c goes at 1300
      { at: 1_300, do: 'refund', of: 'c' },
      { at: 1_300, expect: ok(2, 1_000) }, //             c was gone anyway
    ],
  },
  {
    title: 'refunds the newest charge; gives back from the newest on',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 0, expect: ok(2, 1_000) },
      { at: 500, as: 'd', expect: ok(1, 1_000) },
      { at: 600, do: 'refund', of: 'd' },
      { at: 600, do: 'peek', expect: ok(2, 400) }, //     the charge of 0 goes at 1000
      { at: 700, expect: ok(1, 1_000) },
      { at: 800, do: 'giveBack', cost: 1 }, //            that of 700
      { at: 800, do: 'peek', expect: ok(2, 200) },
      { at: 900, cost: 2, expect: ok(0, 1_000) },
      { at: 950, do: 'giveBack', cost: 5 },
      { at: 950, do: 'peek', expect: ok(3, 0) },
    ],
  },
  {
    title: 'a refund shortens the wait',
    quota: { limit: 3, window: 1_000 },
    steps: [
      { at: 0, as: 'a', expect: ok(2, 1_000) },
      { at: 100, expect: ok(1, 1_000) },
      { at: 200, expect: ok(0, 1_000) },
      { at: 300, cost: 2, expect: no(0, 800, 900) }, //   0 and 100 must go
      { at: 300, do: 'refund', of: 'a' },
      { at: 300, cost: 2, expect: no(1, 800, 900) }, //   100 must go
      { at: 300, cost: 3, expect: no(1, 900, 900) }, //   200 too
      { at: 300, expect: ok(0, 1_000) },
    ],
  },
];
