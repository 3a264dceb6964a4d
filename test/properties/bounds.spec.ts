import fc from 'fast-check';
import { ALGORITHMS } from '../../lib/algorithms/index.js';
import type { Algorithm, Quota } from '../../lib/core/algorithm.js';
import {
  BUCKETS,
  calls,
  check,
  costOf,
  EVERY_ALGORITHM,
  later,
  quotas,
  starts,
  type Call,
} from '../support/arbitraries.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';

interface Passed {
  readonly at: number;
  readonly cost: number;
}

/** Small costs in close order: what finds out how much can pass. */
const crowds = fc.array(calls, { minLength: 20, maxLength: 120 });

function pass(algorithm: Algorithm, quota: Quota, crowd: readonly Call[], start: number): Passed[] {
  const subject = new AlgorithmSubject(algorithm);
  const passed: Passed[] = [];
  let now = start;
  for (const [i, call] of crowd.entries()) {
    now = later(now, { ...call, perMille: call.perMille / 8 }, quota);
    // Every fifth call asks at the moment that the one before was told.
    const cost = costOf(call, algorithm, quota);
    const { allowed, retryAfterMs } = subject.step(quota, now, cost);
    if (allowed) passed.push({ at: now, cost });
    else if (i % 5 === 0 && retryAfterMs < 2 * quota.windowMs) {
      now += retryAfterMs;
      expect(subject.step(quota, now, cost).allowed).toBe(true);
      passed.push({ at: now, cost });
    }
  }
  return passed;
}

/** The most that passes in any span `[t, t + length)`. */
function mostInSpan(passed: readonly Passed[], length: number): number {
  let most = 0;
  let sum = 0;
  let first = 0;
  for (const { at, cost } of passed) {
    sum += cost;
    while (passed[first]!.at <= at - length) sum -= passed[first++]!.cost;
    most = Math.max(most, sum);
  }
  return most;
}

function mostInAlignedWindow(passed: readonly Passed[], length: number): number {
  const sums = new Map<number, number>();
  for (const { at, cost } of passed) {
    const window = Math.floor(at / length);
    sums.set(window, (sums.get(window) ?? 0) + cost);
  }
  return Math.max(0, ...sums.values());
}

/** At most one a millisecond: a clock in milliseconds can tell them apart. */
const slow = quotas.filter(({ limit, windowMs }) => limit <= windowMs);

const SPAN_BOUNDS: Record<string, (quota: Quota) => number> = {
  'sliding-window-log': ({ limit }) => limit,
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window-counter': ({ limit }) => 2 * limit,
  'token-bucket': ({ limit, burst }) => burst + limit,
  gcra: ({ limit, burst }) => burst + limit,
  'leaky-bucket': ({ limit, burst }) => burst + limit,
};

describe.each(EVERY_ALGORITHM)('%s: bounds', (name, algorithm) => {
  it('in any span of one window', () => {
    check(
      fc.property(quotas, crowds, starts, (quota, crowd, start) => {
        const passed = pass(algorithm, quota, crowd, start);
        expect(mostInSpan(passed, quota.windowMs)).toBeLessThanOrEqual(SPAN_BOUNDS[name]!(quota));
      }),
      400,
    );
  });

  if (!(BUCKETS as readonly string[]).includes(name)) {
    it('per aligned window', () => {
      check(
        fc.property(quotas, crowds, starts, (quota, crowd, start) => {
          const passed = pass(algorithm, quota, crowd, start);
          expect(mostInAlignedWindow(passed, quota.windowMs)).toBeLessThanOrEqual(quota.limit);
        }),
        400,
      );
    });
  }

  it('callers whose clocks differ mint nothing by taking turns', () => {
    const skews = fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 2, maxLength: 4 });
    check(
      fc.property(quotas, crowds, starts, skews, (quota, crowd, start, clocks) => {
        const subject = new AlgorithmSubject(algorithm);
        let now = start;
        let earliest = Infinity;
        let latest = 0;
        let total = 0;
        for (const [i, call] of crowd.entries()) {
          now = later(now, { ...call, perMille: call.perMille / 8 }, quota);
          const seen = now + clocks[i % clocks.length]!;
          earliest = Math.min(earliest, seen);
          latest = Math.max(latest, seen);
          const cost = costOf(call, algorithm, quota);
          if (subject.step(quota, seen, cost).allowed) total += cost;
        }
        const { limit, windowMs } = quota;
        const windows = Math.floor(latest / windowMs) - Math.floor(earliest / windowMs) + 1;
        const rolling = Math.floor((latest - earliest) / windowMs) + 1;
        const most = (BUCKETS as readonly string[]).includes(name)
          ? algorithm.capacity(quota) + (limit * (latest - earliest)) / windowMs
          : limit * (name === 'sliding-window-log' ? rolling : windows);
        expect(total).toBeLessThanOrEqual(most);
      }),
      400,
    );
  });
});

describe.each(['token-bucket', 'gcra'] as const)('%s: rate', (name) => {
  it('whoever asks in time gets exactly the rate, with nothing lost to rounding', () => {
    // With a burst of 1 the bucket is empty at each call, and what would drain beyond that is lost.
    const roomy = slow.map((quota) => ({ ...quota, burst: quota.burst + 1 }));
    check(
      fc.property(roomy, starts, ({ limit, windowMs, burst }, start) => {
        const subject = new AlgorithmSubject(ALGORITHMS[name]);
        const quota = { limit, windowMs, burst, maxDelayMs: Infinity };
        let now = start;
        for (let n = 1; n <= burst + 50; n++) {
          let outcome = subject.step(quota, now, 1);
          if (!outcome.allowed) {
            now += outcome.retryAfterMs;
            outcome = subject.step(quota, now, 1);
          }
          expect(outcome.allowed).toBe(true);
          expect(now - start).toBe(Math.max(0, Math.ceil(((n - burst) * windowMs) / limit)));
        }
      }),
      100,
    );
  });
});

describe('leaky-bucket: departures', () => {
  const algorithm = ALGORITHMS['leaky-bucket'];
  const skews = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 3 });

  function departures(
    quota: Quota,
    crowd: readonly Call[],
    start: number,
    clocks: readonly number[],
    one: boolean,
  ) {
    const subject = new AlgorithmSubject(algorithm);
    const left: { at: number; cost: number; held: boolean }[] = [];
    let now = start;
    for (const [i, call] of crowd.entries()) {
      now = later(now, { ...call, perMille: call.perMille / 8 }, quota);
      const seen = now + clocks[i % clocks.length]!;
      const cost = one ? 1 : costOf(call, algorithm, quota);
      const { allowed, delayMs } = subject.step(quota, seen, cost);
      if (allowed) left.push({ at: seen + delayMs, cost, held: delayMs > 0 });
    }
    return left;
  }

  it('of cost 1: at most limit + 1 in any span of one window, both ends included', () => {
    check(
      fc.property(slow, crowds, starts, (quota, crowd, start) => {
        const left = departures(quota, crowd, start, [0], true);
        expect(mostInSpan(left, quota.windowMs + 1)).toBeLessThanOrEqual(quota.limit + 1);
        expect(mostInSpan(left, quota.windowMs)).toBeLessThanOrEqual(quota.limit);
      }),
    );
  });

  it('are evenly spaced, whatever the callers’ clocks say', () => {
    check(
      fc.property(quotas, crowds, starts, skews, fc.boolean(), (quota, crowd, start, clocks, one) => {
        const { limit, windowMs } = quota;
        const left = departures(quota, crowd, start, clocks, one);
        for (let first = 0; first < left.length; first++) {
          let weight = 0;
          for (let i = first + 1; i < left.length; i++) {
            weight += left[i - 1]!.cost;
            // In whole milliseconds each turn is rounded up, so two may be nearer by less than one.
            expect(left[i]!.at - left[first]!.at).toBeGreaterThan((weight * windowMs) / limit - 1);
          }
          const next = left[first + 1];
          // Nobody is held longer than it takes.
          if (next?.held === true) {
            expect(next.at - left[first]!.at).toBeLessThanOrEqual(
              Math.ceil((left[first]!.cost * windowMs) / limit),
            );
          }
        }
      }),
      200,
    );
  });

  it('nobody is held without need: alone, a call goes at once', () => {
    check(
      fc.property(quotas, starts, fc.nat(10), (quota, start, extra) => {
        const subject = new AlgorithmSubject(algorithm);
        subject.step(quota, start, 1);
        const turn = Math.ceil(quota.windowMs / quota.limit);
        expect(subject.copy().step({ ...quota, burst: 2, maxDelayMs: Infinity }, start, 1).delayMs).toBe(
          turn,
        );
        expect(subject.step(quota, start + turn + extra, 1)).toMatchObject({ allowed: true, delayMs: 0 });
      }),
      300,
    );
  });
});

describe('gcra', () => {
  it('decides as the token bucket does, step by step', () => {
    check(
      fc.property(quotas, fc.array(calls, { maxLength: 40 }), starts, (quota, crowd, start) => {
        const bucket = new AlgorithmSubject(ALGORITHMS['token-bucket']);
        const cell = new AlgorithmSubject(ALGORITHMS.gcra);
        let now = start;
        for (const call of crowd) {
          now = later(now, call, quota);
          const cost = costOf(call, ALGORITHMS.gcra, quota);
          expect(cell.step(quota, now, cost)).toEqual(bucket.step(quota, now, cost));
        }
      }),
      200,
    );
  });

  it('decides as virtual scheduling with exact fractions does', () => {
    check(
      fc.property(quotas, fc.array(calls, { maxLength: 40 }), starts, (quota, crowd, start) => {
        const subject = new AlgorithmSubject(ALGORITHMS.gcra);
        const [limit, window, burst] = [quota.limit, quota.windowMs, quota.burst].map(BigInt) as [
          bigint,
          bigint,
          bigint,
        ];
        // The theoretical arrival time in units of 1/limit milliseconds: no fraction is left.
        let arrival = 0n;
        let now = start;
        for (const call of crowd) {
          now = later(now, call, quota);
          const cost = costOf(call, ALGORITHMS.gcra, quota);
          const time = BigInt(now) * limit;
          const next = (arrival > time ? arrival : time) + BigInt(cost) * window;
          const conforms = next - time <= burst * window;
          if (conforms) arrival = next;
          expect(subject.step(quota, now, cost).allowed).toBe(conforms);
        }
      }),
      500,
    );
  });
});
