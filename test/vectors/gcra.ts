import { no, ok, type Scenario } from '../support/run-vectors.js';
import { tokenBucket } from './token-bucket.js';

// A call moves the theoretical arrival time (TAT) on by cost × T, T = window / limit, from max(now, TAT); it conforms
// when the new TAT is at most burst × T ahead. All is back at TAT. The bucket's vectors hold as well.
export const gcra: readonly Scenario[] = [
  {
    title: 'T = 250, two at once',
    quota: { limit: 4, window: 1_000, burst: 2 },
    steps: [
      { at: 0, expect: ok(1, 250) }, //                   TAT 250
      { at: 0, expect: ok(0, 500) }, //                   TAT 500
      { at: 0, expect: no(0, 250, 500) }, //              750 - 500 = 250
      { at: 249, expect: no(0, 1, 251) },
      { at: 250, expect: ok(0, 500) }, //                 TAT 750
      { at: 1_000, expect: ok(1, 250) }, //               idle beyond 750: TAT 1250
      { at: 1_000, cost: 2, expect: no(1, 250, 250) }, // 1750 - 500 = 1250
      { at: 1_000, cost: 3, expect: no(1, Infinity, 250) }, // 3 T ahead of any time
      { at: 1_250, cost: 2, expect: ok(0, 500) }, //      TAT 1750
    ],
  },
  {
    title: 'T = 250, one at a time',
    quota: { limit: 4, window: 1_000, burst: 1 },
    steps: [
      { at: 0, expect: ok(0, 250) },
      { at: 249, expect: no(0, 1, 1) },
      { at: 250, expect: ok(0, 250) },
      { at: 251, expect: no(0, 249, 249) },
      { at: 600, expect: ok(0, 250) }, //                 a late call moves the next one: TAT 850
      { at: 849, expect: no(0, 1, 1) },
      { at: 850, expect: ok(0, 250) },
    ],
  },
  ...tokenBucket,
];
