import { no, ok, type Scenario } from '../support/run-vectors.js';

// In units of 1/window, as the token bucket; a call is held until all before it has drained: used / limit.
export const leakyBucket: readonly Scenario[] = [
  {
    title: 'spaces departures evenly and denies what finds no room',
    quota: { limit: 4, window: 1_000, burst: 3 },
    steps: [
      { at: 0, expect: ok(2, 250) }, //                   leaves at 0
      { at: 0, expect: ok(1, 500, 250) }, //              leaves at 250
      { at: 0, expect: ok(0, 750, 500) }, //              leaves at 500
      { at: 0, expect: no(0, 250, 750) }, //              1000 too many; 1000 / 4
      { at: 249, expect: no(0, 1, 501) }, //              3000 - 996 = 2004; 4 too many
      { at: 250, expect: ok(0, 750, 500) }, //            2000 / 4: leaves at 750
      { at: 1_000, expect: ok(2, 250) }, //               empty again
      { at: 1_100, expect: ok(1, 400, 150) }, //          600 / 4: leaves at 1250; 1600 used, left ⌊1.4⌋
    ],
  },
  {
    title: 'rounds a turn up to whole milliseconds without losing any in the long run',
    quota: { limit: 3, window: 1_000, burst: 3 },
    steps: [
      { at: 0, expect: ok(2, 334) }, //                   leaves at 0; ⌈1000 / 3⌉
      { at: 0, expect: ok(1, 667, 334) }, //              leaves at ⌈333.3⌉; ⌈2000 / 3⌉
      { at: 0, expect: ok(0, 1_000, 667) }, //            leaves at ⌈666.7⌉
      { at: 0, expect: no(0, 334, 1_000) },
      { at: 333, expect: no(0, 1, 667) }, //              3000 - 999 = 2001
      { at: 334, expect: ok(0, 1_000, 666) }, //          1998 / 3: leaves at 1000
    ],
  },
  {
    title: 'denies a call that would be held longer than maxDelay',
    quota: { limit: 4, window: 1_000, burst: 10, maxDelay: 300 },
    steps: [
      { at: 0, expect: ok(9, 250) },
      { at: 0, expect: ok(8, 500, 250) },
      { at: 0, expect: no(8, 200, 500) }, //              500 - 300
      { at: 199, expect: no(8, 1, 301) }, //              2000 - 796 = 1204: 301
      { at: 200, expect: ok(7, 550, 300) }, //            1200: 300; left ⌊7.8⌋, 2200 / 4
    ],
  },
  {
    title: 'maxDelay 0 holds nobody',
    quota: { limit: 4, window: 1_000, burst: 3, maxDelay: 0 },
    steps: [
      { at: 0, expect: ok(2, 250) },
      { at: 0, expect: no(2, 250, 250) },
      { at: 249, expect: no(2, 1, 1) },
      { at: 250, expect: ok(2, 250) },
    ],
  },
  {
    title: 'waits for both room and a turn that is near enough',
    quota: { limit: 4, window: 1_000, burst: 2, maxDelay: 100 },
    steps: [
      { at: 0, expect: ok(1, 250) },
      { at: 0, expect: no(1, 150, 250) }, //              turn: 250 - 100; room: there is
      { at: 0, cost: 2, expect: no(1, 250, 250) }, //     turn: 150; room: 1000 too many, 250
      { at: 249, cost: 2, expect: no(1, 1, 1) }, //       4 used: 4 too many; left ⌊1.996⌋
      { at: 250, cost: 2, expect: ok(0, 500) },
    ],
  },
  {
    title: 'a cost takes as many places; a denial takes none; a cost over the burst can never pass',
    quota: { limit: 4, window: 1_000, burst: 4 },
    steps: [
      { at: 0, cost: 5, expect: no(4, Infinity, 0) },
      { at: 0, cost: 3, expect: ok(1, 750) },
      { at: 0, cost: 2, expect: no(1, 250, 750) },
      { at: 0, cost: 1, expect: ok(0, 1_000, 750) },
      { at: 0, cost: 5, expect: no(0, Infinity, 1_000) },
      { at: 500, cost: 2, expect: ok(0, 1_000, 500) }, // 4000 - 2000 = 2000 / 4
      { at: 5_000, cost: 4, expect: ok(0, 1_000) }, //    idle saves nothing up
      { at: 5_000, expect: no(0, 250, 1_000) },
    ],
  },
  {
    title: 'never goes back in time: an earlier clock waits for the same turn',
    quota: { limit: 4, window: 1_000, burst: 3 },
    steps: [
      { at: 1_000, expect: ok(2, 250) },
      { at: 800, expect: ok(1, 700, 450) }, //            leaves at 1250
      { at: 800, expect: ok(0, 950, 700) }, //            leaves at 1500
      { at: 800, expect: no(0, 450, 950) }, //            200 + 250
      { at: 1_249, expect: no(0, 1, 501) },
      { at: 1_250, expect: ok(0, 750, 500) }, //          leaves at 1750
    ],
  },
  {
    title: 'keeps a time exactly a minute ahead of the clock',
    quota: { limit: 4, window: 1_000, burst: 2 },
    steps: [
      { at: 100_000, expect: ok(1, 250) },
      { at: 40_000, expect: ok(0, 60_500, 60_250) },
      { at: 40_000, expect: no(0, 60_250, 60_500) },
    ],
  },
  {
    title: 'sets a time further ahead back to now, and keeps the queue',
    quota: { limit: 4, window: 1_000, burst: 2 },
    steps: [
      { at: 100_000, expect: ok(1, 250) },
      { at: 39_999, expect: ok(0, 500, 250) },
      { at: 39_999, expect: no(0, 250, 500) },
      { at: 40_249, expect: ok(0, 500, 250) },
    ],
  },
  {
    title: 'a clock that jumped does not lock a full subject for good',
    quota: { limit: 4, window: 1_000, burst: 2 },
    steps: [
      { at: 200_000, cost: 2, expect: ok(0, 500) },
      { at: 10_000, expect: no(0, 250, 500) },
      { at: 10_249, expect: no(0, 1, 251) },
      { at: 10_250, expect: ok(0, 500, 250) },
    ],
  },
  {
    title: 'follows a limit that is lowered, raised, and set to nothing',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 4, expect: ok(0, 1_000) },
      { at: 0, quota: { limit: 2 }, expect: no(0, 1_500, 2_000) }, //    3000 too many; 4000 / 2
      { at: 1_499, expect: no(0, 1, 501) }, //                           4000 - 2998 = 1002
      { at: 1_500, expect: ok(0, 1_000, 500) }, //                       1000 / 2
      { at: 1_500, quota: { limit: 8 }, expect: ok(5, 375, 250) }, //    2000 / 8
      { at: 1_500, quota: { limit: 0 }, expect: no(0, Infinity, 0) },
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
    title: 'keeps the places in the queue when the window changes',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 2, expect: ok(2, 500) },
      { at: 0, quota: { window: 2_000 }, expect: ok(1, 1_500, 1_000) }, // 4000 / 4; 6000 used
      { at: 500, quota: { window: 1_000 }, expect: ok(2, 500, 250) }, //   3000 - 2000 = 1000
    ],
  },
  {
    title: 'refunds the last place in the queue only',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, expect: ok(3, 250) },
      { at: 0, as: 'b', expect: ok(2, 500, 250) },
      { at: 0, as: 'c', expect: ok(1, 750, 500) },
      { at: 100, do: 'refund', of: 'b' }, //              c already knows when it leaves
      { at: 100, do: 'peek', expect: { ...ok(1, 650), delayMs: 650 } }, // 2600 used
      { at: 100, do: 'refund', of: 'c' },
      { at: 100, do: 'peek', expect: { ...ok(2, 400), delayMs: 400 } }, // 1600
      { at: 200, do: 'giveBack', cost: 5 },
      { at: 200, do: 'peek', expect: ok(4, 0) },
    ],
  },
  {
    title: 'refunds of the last place what has not drained',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 3, as: 'a', expect: ok(1, 750) },
      { at: 250, do: 'refund', of: 'a' }, //              2000 of a are left
      { at: 250, do: 'peek', expect: ok(4, 0) },
      { at: 250, expect: ok(3, 250) },
      { at: 1_000, expect: ok(3, 250) },
      { at: 1_000, do: 'refund', of: 'a' },
      { at: 1_000, do: 'peek', expect: { ...ok(3, 250), delayMs: 250 } },
    ],
  },
  {
    title: 'refunds nothing once the window has changed: levels do not compare',
    quota: { limit: 4, window: 1_000 },
    steps: [
      { at: 0, cost: 2, as: 'a', expect: ok(2, 500) }, //                          2000
      { at: 0, quota: { window: 500 }, cost: 2, expect: ok(0, 500, 250) }, //      1000 + 1000 = 2000 again
      { at: 0, do: 'refund', of: 'a' },
      { at: 0, do: 'peek', expect: no(0, 125, 500) }, //                           500 too many
    ],
  },
];
