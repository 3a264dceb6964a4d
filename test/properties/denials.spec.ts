import fc from 'fast-check';
import { MAX_CLOCK_LEAD_MS, type Algorithm, type Quota } from '../../lib/core/algorithm.js';
import {
  callsOfAnyClock,
  check,
  costOf,
  EVERY_ALGORITHM,
  histories,
  hugeQuotas,
  later,
  quotasWithNone,
  starts,
  type Call,
} from '../support/arbitraries.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';

type History = { quota: Quota; calls: Call[] }[];

function replay(
  algorithm: Algorithm,
  history: History,
  start: number,
  visit: (subject: AlgorithmSubject, quota: Quota, now: number, cost: number) => void,
): void {
  const subject = new AlgorithmSubject(algorithm);
  let now = start;
  for (const { quota, calls } of history) {
    for (const call of calls) {
      now = later(now, call, quota);
      visit(subject, quota, now, costOf(call, algorithm, quota));
    }
  }
}

describe.each(EVERY_ALGORITHM)('%s: denials', (_name, algorithm) => {
  function expectExactLifting(
    subject: AlgorithmSubject,
    quota: Quota,
    now: number,
    cost: number,
    between: number,
  ): void {
    const { allowed, retryAfterMs } = subject.step(quota, now, cost);
    if (allowed) {
      expect(retryAfterMs).toBe(0);
      return;
    }
    if (retryAfterMs === Infinity) {
      expect(cost).toBeGreaterThan(algorithm.capacity(quota));
      return;
    }
    expect(cost).toBeLessThanOrEqual(algorithm.capacity(quota));
    expect(Number.isSafeInteger(retryAfterMs)).toBe(true);
    expect(retryAfterMs).toBeGreaterThanOrEqual(1);
    // Others who ask in between change nothing.
    const meanwhile = now + Math.floor((retryAfterMs - 1) * between);
    const inBetween = subject.step(quota, meanwhile, cost);
    const justBefore = subject.copy().step(quota, now + retryAfterMs - 1, cost);
    const then = subject.copy().step(quota, now + retryAfterMs, cost);
    const outcomes = [inBetween, justBefore, then].map((outcome) => [outcome.allowed, outcome.retryAfterMs]);
    expect(outcomes).toEqual([
      [false, now + retryAfterMs - meanwhile],
      [false, 1],
      [true, 0],
    ]);
  }

  const betweens = fc.double({ min: 0, max: 1, noNaN: true });

  it('are lifted exactly at retryAfterMs, after any history of quotas and clocks', () => {
    check(
      fc.property(histories(), starts, betweens, (history, start, between) => {
        replay(algorithm, history, start, (subject, quota, now, cost) => {
          expectExactLifting(subject.copy(), quota, now, cost, between);
          subject.step(quota, now, cost);
        });
      }),
    );
  });

  it('are lifted exactly at retryAfterMs by the largest quotas', () => {
    check(
      fc.property(
        histories(hugeQuotas).map((all) => all.slice(0, 1)),
        starts,
        betweens,
        (history, start, between) => {
          replay(algorithm, history, start, (subject, quota, now, cost) => {
            expectExactLifting(subject.copy(), quota, now, cost, between);
            subject.step(quota, now, cost);
          });
        },
      ),
      200,
    );
  });

  it('change no register, unless the stored time or the window is not of today', () => {
    check(
      fc.property(histories(), starts, (history, start) => {
        replay(algorithm, history, start, (subject, quota, now, cost) => {
          const before = subject.state;
          const { allowed } = subject.step(quota, now, cost);
          if (allowed || algorithm.shape === 'log') return;
          const ahead = Math.max(...before) > now + MAX_CLOCK_LEAD_MS;
          const resized = before[algorithm.registers.indexOf('window')] !== quota.windowMs;
          if (!ahead && !resized) expect(subject.state).toEqual(before);
        });
      }),
    );
  });

  it('change nothing of a subject that was never seen', () => {
    check(
      fc.property(quotasWithNone, starts, (quota, start) => {
        const subject = new AlgorithmSubject(algorithm);
        expect(subject.step(quota, start, algorithm.capacity(quota) + 1).allowed).toBe(false);
        expect(subject.state.every((number) => number === 0)).toBe(true);
      }),
    );
  });

  it('leave as much as there was', () => {
    check(
      fc.property(histories(), starts, (history, start) => {
        replay(algorithm, history, start, (subject, quota, now, cost) => {
          const before = subject.copy().step(quota, now, 0);
          const { allowed, remaining, resetAfterMs } = subject.step(quota, now, cost);
          if (!allowed)
            expect({ remaining, resetAfterMs }).toEqual({
              remaining: before.remaining,
              resetAfterMs: before.resetAfterMs,
            });
          else expect(remaining).toBe(before.remaining - cost);
        });
      }),
    );
  });

  it('a cost of 0 measures and changes nothing', () => {
    check(
      fc.property(
        histories(),
        starts,
        fc.array(callsOfAnyClock, { maxLength: 3 }),
        (history, start, looks) => {
          replay(algorithm, history, start, (subject, quota, now, cost) => {
            const untouched = subject.copy();
            let at = now;
            for (const look of looks) {
              const before = subject.state;
              at = later(at, look, quota);
              // A log may forget what has expired, which a clock set back cannot bring back.
              const looked = algorithm.shape === 'log' ? subject.copy() : subject;
              looked.step(quota, at, 0);
              expect(subject.state).toEqual(before);
            }
            expect(subject.step(quota, now, cost)).toEqual(untouched.step(quota, now, cost));
          });
        },
      ),
      300,
    );
  });

  it('limit 0 admits nothing, ever', () => {
    check(
      fc.property(histories(), starts, (history, start) => {
        replay(algorithm, history, start, (subject, quota, now, cost) => {
          const none = subject.copy().step({ ...quota, limit: 0 }, now, cost);
          expect(none).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: Infinity, delayMs: 0 });
          subject.step(quota, now, cost);
        });
      }),
      200,
    );
  });
});
