import fc from 'fast-check';
import type { Quota } from '../../lib/core/algorithm.js';
import {
  calls,
  callsOfAnyClock,
  check,
  costOf,
  EVERY_ALGORITHM,
  fullOf,
  histories,
  hugeQuotas,
  later,
  quotas,
  starts,
} from '../support/arbitraries.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';

describe.each(EVERY_ALGORITHM)('%s: outcomes', (name, algorithm) => {
  /** What of an outcome is out of its range. */
  function outOfRange(subject: AlgorithmSubject, quota: Quota, now: number, cost: number): string[] {
    const outcome = subject.step(quota, now, cost);
    const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, receipt } = outcome;
    const state = Object.fromEntries(subject.state.entries());
    const whole = Object.entries({ remaining, resetAfterMs, delayMs, ...receipt, ...state });
    const rules = {
      ...Object.fromEntries(whole.map(([key, number]) => [key, Number.isSafeInteger(number) && number >= 0])),
      'remaining at most the whole': remaining <= fullOf(algorithm, quota),
      'retryAfterMs 0 or at least 1': allowed ? retryAfterMs === 0 : retryAfterMs >= 1,
      'delayMs of a shaper': (name === 'leaky-bucket' && allowed) || delayMs === 0,
      'delayMs at most maxDelay': delayMs <= quota.maxDelayMs,
      'charged at now or later': receipt.chargedAt >= now,
    };
    return Object.entries(rules).flatMap(([rule, kept]) => (kept ? [] : [rule]));
  }

  it('stay in their range; registers are whole numbers below 2^53, and nobody else’s are touched', () => {
    for (const of of [undefined, hugeQuotas]) {
      check(
        fc.property(histories(of), starts, (history, start) => {
          const subject = new AlgorithmSubject(algorithm);
          const { surroundings } = subject;
          let now = start;
          for (const { quota, calls } of of === undefined ? history : history.slice(0, 1)) {
            for (const call of calls) {
              now = later(now, call, quota);
              expect(outOfRange(subject, quota, now, costOf(call, algorithm, quota))).toEqual([]);
            }
          }
          expect(subject.surroundings).toEqual(surroundings);
        }),
        500,
      );
    }
  });

  it('the whole quota is back at resetAfterMs, and not a millisecond earlier', () => {
    check(
      fc.property(histories(quotas), starts, (history, start) => {
        const subject = new AlgorithmSubject(algorithm);
        let now = start;
        for (const { quota, calls } of history) {
          for (const call of calls) {
            now = later(now, call, quota);
            const { resetAfterMs } = subject.step(quota, now, costOf(call, algorithm, quota));
            const full = fullOf(algorithm, quota);
            const then = subject.copy().step(quota, now + resetAfterMs, 0);
            const earlier = subject.copy().step(quota, now + Math.max(0, resetAfterMs - 1), 0);
            expect([
              then.remaining,
              then.resetAfterMs,
              earlier.remaining < full,
              earlier.resetAfterMs,
            ]).toEqual(resetAfterMs === 0 ? [full, 0, false, 0] : [full, 0, true, 1]);
          }
        }
      }),
    );
  });

  it('more time never leaves less', () => {
    check(
      fc.property(
        histories(quotas),
        starts,
        fc.array(fc.nat(400), { maxLength: 8 }),
        (history, start, pauses) => {
          const subject = new AlgorithmSubject(algorithm);
          let now = start;
          for (const { quota, calls } of history) {
            for (const call of calls) {
              now = later(now, call, quota);
              let left = subject.step(quota, now, costOf(call, algorithm, quota)).remaining;
              const looker = subject.copy();
              let at = now;
              for (const pause of pauses) {
                at += Math.ceil((pause * quota.windowMs) / 1_000);
                const { remaining } = looker.step(quota, at, 0);
                expect(remaining).toBeGreaterThanOrEqual(left);
                left = remaining;
              }
            }
          }
        },
      ),
      300,
    );
  });

  it('after idleMs without a call a subject is as if it had never been seen', () => {
    check(
      fc.property(
        quotas,
        fc.array(calls, { minLength: 1, maxLength: 15 }),
        starts,
        calls,
        (quota, history, start, next) => {
          const subject = new AlgorithmSubject(algorithm);
          let now = start;
          for (const call of history) {
            now = later(now, call, quota);
            subject.step(quota, now, costOf(call, algorithm, quota));
          }
          const idle = algorithm.idleMs(quota);
          expect(Number.isSafeInteger(idle) && idle >= 1).toBe(true);
          const then = later(now + idle, next, quota);
          const fresh = new AlgorithmSubject(algorithm);
          const cost = costOf(next, algorithm, quota);
          expect(subject.step(quota, then, cost)).toEqual(fresh.step(quota, then, cost));
          if (cost <= algorithm.capacity(quota)) expect(subject.state).toEqual(fresh.state);
        },
      ),
    );
  });

  it('idleMs is no longer than the worst case needs', () => {
    check(
      fc.property(quotas, starts, (quota, start) => {
        // At the very start of a window, so that everything counts for as long as it can.
        const now = start - (start % quota.windowMs);
        const full = new AlgorithmSubject(algorithm).step(quota, now, algorithm.capacity(quota));
        expect(full.resetAfterMs).toBe(algorithm.idleMs(quota));
      }),
    );
  });

  it('the first call after any idle time meets the whole quota, and no more', () => {
    check(
      fc.property(quotas, starts, fc.integer({ min: 0, max: 1_000 }), (quota, start, windows) => {
        const subject = new AlgorithmSubject(algorithm);
        const open = { ...quota, maxDelayMs: Infinity };
        const full = algorithm.capacity(open);
        subject.step(open, start, full);
        const now = start + algorithm.idleMs(open) + windows * open.windowMs;
        expect(subject.copy().step(open, now, full + 1)).toMatchObject({ allowed: false, remaining: full });
        expect(subject.step(open, now, full)).toMatchObject({ allowed: true, remaining: 0 });
        expect(subject.step(open, now, 1).allowed).toBe(false);
      }),
    );
  });

  it('a time more than a minute ahead is set back, and what was used is kept', () => {
    check(
      fc.property(
        quotas,
        starts,
        fc.integer({ min: 60_001, max: 10 ** 10 }),
        callsOfAnyClock,
        (quota, start, lead, call) => {
          const subject = new AlgorithmSubject(algorithm);
          const open = { ...quota, maxDelayMs: Infinity };
          const cost = Math.min(costOf(call, algorithm, open), algorithm.capacity(open));
          const { remaining } = subject.step(open, start + lead + open.windowMs, cost);
          const back = subject.step(open, start, 1);
          expect(back.remaining).toBe(Math.max(0, remaining - 1));
          expect(back.receipt.chargedAt).toBe(start);
          expect(back.resetAfterMs).toBeLessThanOrEqual(algorithm.idleMs(open));
        },
      ),
    );
  });
});

describe('defaults', () => {
  it.each(EVERY_ALGORITHM)(
    '%s: the burst of a policy that names none admits one call, unless the limit is 0',
    (_name, algorithm) => {
      check(
        fc.property(quotas, ({ limit, windowMs }) => {
          const burst = algorithm.defaultBurst(limit, windowMs);
          expect(Number.isSafeInteger(burst) && burst >= 1 && burst <= limit).toBe(true);
          const none = algorithm.defaultBurst(0, windowMs);
          expect(none).toBe(0);
        }),
      );
    },
  );

  it('leaky bucket: what leaves in a second, at most the limit, at least one', () => {
    const { defaultBurst } = EVERY_ALGORITHM.find(([name]) => name === 'leaky-bucket')![1];
    expect(defaultBurst(100, 1_000)).toBe(100);
    expect(defaultBurst(100, 10_000)).toBe(10);
    expect(defaultBurst(100, 60_000)).toBe(1); // 1.67 a second
    expect(defaultBurst(119, 60_000)).toBe(1); // 1.98 a second
    expect(defaultBurst(120, 60_000)).toBe(2);
    expect(defaultBurst(5, 60_000)).toBe(1);
    expect(defaultBurst(100, 100)).toBe(100);
  });
});
