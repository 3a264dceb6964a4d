import assert from 'node:assert/strict';
import type { Algorithm, Quota } from '../core/algorithm.js';
import { AlgorithmSubject } from './algorithm-subject.js';
import { testFramework, type TestFramework } from './test-framework.js';

/** How the suite looks at an algorithm. */
export interface AlgorithmSuiteOptions {
  /** By which quotas it is looked at; default three of limit 1, 5 and 100, in windows of 1 s, 10 s and 1 min. */
  readonly quotas?: readonly Quota[];
  /** Default: `describe` and `it` of the global scope. */
  readonly framework?: TestFramework;
}

/** A whole hour, so that windows that divide it are aligned to it. */
const START = 472_222 * 3_600_000;
const CALLS = 200;

/** What happens to a subject: the same in every run, and often near the edges of the quota. */
function* calls(quota: Quota, capacity: number): Generator<{ now: number; cost: number }> {
  let seed = 1;
  let now = START;
  for (let i = 0; i < CALLS; i++) {
    // The "minimal standard" generator of Park and Miller.
    seed = (seed * 48_271) % 2_147_483_647;
    now += [0, 0, 1, Math.ceil(quota.windowMs / 7), quota.windowMs, -3][seed % 6]!;
    yield { now, cost: [1, 1, 2, Math.ceil(capacity / 2), capacity, capacity + 1][(seed >> 8) % 6]! };
  }
}

/**
 * The tests that every algorithm has to pass: whole numbers, a denial that takes nothing and is lifted exactly when it
 * says, an idle time after which nothing is left, and refunds. Call it in a test file; it declares a suite.
 *
 * @example
 * describeAlgorithm(myAlgorithm);
 */
export function describeAlgorithm(algorithm: Algorithm, options: AlgorithmSuiteOptions = {}): void {
  const { describe, it } = testFramework(options.framework);
  const quotas =
    options.quotas ??
    (
      [
        [1, 1_000],
        [5, 10_000],
        [100, 60_000],
      ] as const
    ).map(([limit, windowMs]) => ({
      limit,
      windowMs,
      burst: algorithm.defaultBurst(limit, windowMs),
      maxDelayMs: Infinity,
    }));

  const test = (title: string, look: (quota: Quota, capacity: number) => void): void => {
    it(title, async () => {
      for (const quota of quotas) look(quota, algorithm.capacity(quota));
    });
  };

  describe(algorithm.name, () => {
    test('has the whole quota for a subject that was never seen, and a look changes nothing', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      const before = subject.state;
      const { allowed, remaining, resetAfterMs } = subject.step(quota, START, 0);
      assert.deepEqual([allowed, remaining, resetAfterMs], [true, capacity, 0]);
      assert.deepEqual(subject.state, before);
    });

    test('fills every slot, and stores whole numbers in its own registers only', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const { remaining } = subject.step(quota, now, cost);
        const unfilled = subject.out.findIndex(Number.isNaN);
        assert.equal(unfilled, -1, `slot ${unfilled} was not filled`);
        assert.ok(subject.state.every(Number.isSafeInteger), `not all whole: ${subject.state.join(', ')}`);
        assert.ok(subject.surroundings.every(Number.isNaN), 'it wrote beside its own registers');
        assert.ok(remaining >= 0 && remaining <= capacity, `${remaining} remain of ${capacity}`);
      }
    });

    test('takes nothing by a denial, and lifts it exactly at retryAfterMs', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const before = subject.copy().step(quota, now, 0).remaining;
        const { allowed, remaining, retryAfterMs: wait } = subject.step(quota, now, cost);
        if (allowed) continue;
        assert.equal(remaining, before);
        assert.equal(wait === Infinity, cost > capacity);
        if (wait === Infinity) continue;
        assert.equal(subject.copy().step(quota, now + wait - 1, cost).allowed, false);
        assert.equal(subject.copy().step(quota, now + wait, cost).allowed, true);
      }
    });

    test('has forgotten everything after idleMs', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const at = Math.max(now, subject.step(quota, now, cost).receipt.chargedAt);
        const later = subject.copy().step(quota, at + algorithm.idleMs(quota), 0);
        assert.deepEqual([later.remaining, later.resetAfterMs], [capacity, 0]);
      }
    });

    test('gives back what a charge took', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const before = subject.copy().step(quota, now, 0);
        const charged = subject.copy();
        const { allowed, receipt } = charged.step(quota, now, cost);
        if (allowed) {
          charged.refund(quota, now, cost, receipt);
          const after = charged.step(quota, now, 0);
          assert.deepEqual([after.remaining, after.resetAfterMs], [before.remaining, before.resetAfterMs]);
        }
        subject.step(quota, now, cost);
      }
    });

    test('holds nobody whom it denies', (quota, capacity) => {
      const subject = new AlgorithmSubject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const { allowed, delayMs } = subject.step(quota, now, cost);
        assert.ok(allowed || delayMs === 0);
      }
    });
  });
}
