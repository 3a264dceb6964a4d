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
  later,
  quotas,
  starts,
} from '../support/arbitraries.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';

describe.each(EVERY_ALGORITHM)('%s: refunds', (name, algorithm) => {
  const counters = ['fixed-window', 'sliding-window-counter'];

  it('right after the charge everything is as before', () => {
    check(
      fc.property(histories(quotas), starts, (history, start) => {
        const subject = new AlgorithmSubject(algorithm);
        let now = start;
        for (const { quota, calls } of history) {
          for (const call of calls) {
            now = later(now, call, quota);
            const before = subject.copy().step(quota, now, 0);
            const refunded = subject.copy();
            const cost = costOf(call, algorithm, quota);
            const { allowed, receipt } = refunded.step(quota, now, cost);
            if (allowed) {
              refunded.refund(quota, now, cost, receipt);
              const after = refunded.step(quota, now, 0);
              expect([after.remaining, after.resetAfterMs]).toEqual([before.remaining, before.resetAfterMs]);
            }
            subject.step(quota, now, cost);
          }
        }
      }),
    );
  });

  it('leave no more than if the charge had never been, whatever happened since', () => {
    const after = fc.array(calls, { maxLength: 8 });
    check(
      fc.property(
        quotas,
        fc.option(quotas, { nil: undefined }),
        fc.tuple(after, calls, after, after),
        fc.nat(8),
        starts,
        (first, changed, [before, charge, between, afterwards], changeAt, start) => {
          const real = new AlgorithmSubject(algorithm);
          const twin = new AlgorithmSubject(algorithm);
          let quota: Quota = first;
          let now = start;
          function both(call: (typeof before)[number]): void {
            now = later(now, call, quota);
            const cost = costOf(call, algorithm, quota);
            // The twin takes what the other was granted, and nothing else.
            if (real.step(quota, now, cost).allowed) expect(twin.step(quota, now, cost).allowed).toBe(true);
          }
          function compare(): void {
            const left = real.copy().step(quota, now, 0);
            const without = twin.copy().step(quota, now, 0);
            expect(left.remaining).toBeLessThanOrEqual(without.remaining);
            expect(left.resetAfterMs).toBeGreaterThanOrEqual(without.resetAfterMs);
          }
          before.forEach(both);
          now = later(now, charge, quota);
          const cost = costOf(charge, algorithm, quota);
          const { allowed, receipt } = real.step(quota, now, cost);
          fc.pre(allowed);
          for (const [i, call] of between.entries()) {
            // Raised, that is: a lower rate also holds for the time since the last call, which isn't the twin's. And a
            // counter carries one window into another at a call, which the twin may not see.
            if (i === changeAt && changed !== undefined) {
              quota = {
                limit: Math.max(quota.limit, changed.limit),
                windowMs: counters.includes(name)
                  ? quota.windowMs
                  : Math.min(quota.windowMs, changed.windowMs),
                burst: Math.max(quota.burst, changed.burst),
                maxDelayMs: changed.maxDelayMs,
              };
            }
            both(call);
          }
          real.refund(quota, now, cost, receipt);
          compare();
          for (const call of afterwards) {
            both(call);
            compare();
          }
        },
      ),
      800,
    );
  });

  it('by receipt restore all that still counts, while nothing else happens', () => {
    check(
      fc.property(
        quotas,
        calls,
        calls,
        fc.array(calls, { maxLength: 6 }),
        starts,
        (quota, charge, wait, before, start) => {
          const real = new AlgorithmSubject(algorithm);
          const twin = new AlgorithmSubject(algorithm);
          let now = start;
          for (const call of before) {
            now = later(now, call, quota);
            const cost = costOf(call, algorithm, quota);
            real.step(quota, now, cost);
            twin.step(quota, now, cost);
          }
          now = later(now, charge, quota);
          const cost = costOf(charge, algorithm, quota);
          const { allowed, receipt } = real.step(quota, now, cost);
          fc.pre(allowed);
          now = later(now, wait, quota);
          real.refund(quota, now, cost, receipt);
          // A place in the queue that has drained to nothing is nobody's any more.
          const { remaining, resetAfterMs } = real.step(quota, now, 0);
          const without = twin.step(quota, now, 0);
          expect([remaining, resetAfterMs]).toEqual([without.remaining, without.resetAfterMs]);
        },
      ),
    );
  });

  it('without a receipt give back at most the cost, and never leave less than nothing used', () => {
    check(
      fc.property(histories(quotas), starts, callsOfAnyClock, fc.nat(20), (history, start, wait, cost) => {
        const subject = new AlgorithmSubject(algorithm);
        let now = start;
        for (const { quota, calls } of history) {
          for (const call of calls) {
            now = later(now, call, quota);
            subject.step(quota, now, costOf(call, algorithm, quota));
          }
        }
        const { quota } = history.at(-1)!;
        now = later(now, { ...wait, ms: Math.abs(wait.ms) % 100, perMille: Math.abs(wait.perMille) }, quota);
        const before = subject.copy().step(quota, now, 0);
        subject.refund(quota, now, cost, null);
        const after = subject.copy().step(quota, now, 0);
        expect(after.remaining).toBeGreaterThanOrEqual(before.remaining);
        expect(after.remaining).toBeLessThanOrEqual(
          Math.min(fullOf(algorithm, quota), before.remaining + cost),
        );
        for (const number of subject.state) expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
      }),
    );
  });

  it('of a subject that is no longer there do nothing', () => {
    const quota = { limit: 5, windowMs: 1_000, burst: 5, maxDelayMs: Infinity };
    const { receipt } = new AlgorithmSubject(algorithm).step(quota, 1_500, 2);
    for (const given of [receipt, null]) {
      const subject = new AlgorithmSubject(algorithm);
      subject.refund(quota, 1_600, 2, given);
      expect(subject.state.every((number) => number === 0)).toBe(true);
      expect(subject.step(quota, 1_700, 5).allowed).toBe(true);
    }
  });
});

describe('sliding-window-log', () => {
  it('holds at most limit entries, whatever is refunded', () => {
    const algorithm = EVERY_ALGORITHM.find(([name]) => name === 'sliding-window-log')![1];
    check(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.nat(3), { minLength: 50, maxLength: 100 }),
        (limit, lags) => {
          const quota = { limit, windowMs: 10_000, burst: limit, maxDelayMs: Infinity };
          const subject = new AlgorithmSubject(algorithm);
          const open: ReturnType<AlgorithmSubject['step']>[] = [];
          for (const [i, lag] of lags.entries()) {
            const outcome = subject.step(quota, 1_000_000 + i, 1);
            if (outcome.allowed) open.push(outcome);
            expect(subject.state.length / 2).toBeLessThanOrEqual(limit);
            // Each charge is refunded some calls later, out of order.
            const due = open.splice(Math.max(0, open.length - 1 - lag), 1)[0];
            if (due !== undefined && i % 7 !== 0) subject.refund(quota, 1_000_000 + i, 1, due.receipt);
            else if (due !== undefined) open.push(due);
            // What is left is what was taken and not refunded.
            expect(subject.copy().step(quota, 1_000_000 + i, 0).remaining).toBe(limit - open.length);
          }
        },
      ),
      300,
    );
  });
});
