import assert from 'node:assert/strict';
import {
  ALLOWED,
  CHARGED_AT,
  DELAY,
  MARK,
  OUTCOME_SLOTS,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Algorithm,
  type Quota,
  type Receipt,
} from '../core/algorithm.js';
import { EntryRing } from '../drivers/memory/entry-ring.js';
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

/** The state of one subject, and what it answers. */
class Subject {
  readonly out = new Float64Array(OUTCOME_SLOTS);
  #registers: Float64Array;
  #log = new EntryRing();

  constructor(readonly algorithm: Algorithm) {
    this.#registers = new Float64Array(algorithm.shape === 'registers' ? algorithm.registers.length : 0);
  }

  step(quota: Quota, now: number, cost: number): Float64Array {
    const { algorithm } = this;
    this.out.fill(NaN);
    if (algorithm.shape === 'log') algorithm.step(this.#log, quota, now, cost, this.out);
    else algorithm.step(this.#registers, 0, quota, now, cost, this.out);
    return this.out;
  }

  refund(quota: Quota, now: number, receipt: Receipt): void {
    const { algorithm } = this;
    if (algorithm.shape === 'log') algorithm.refund(this.#log, quota, now, receipt.cost, receipt);
    else algorithm.refund(this.#registers, 0, quota, now, receipt.cost, receipt);
  }

  /** Every number that is stored. */
  get state(): number[] {
    const entries = Array.from({ length: this.#log.size }, (_, i) => [this.#log.time(i), this.#log.cost(i)]);
    return [...this.#registers, ...entries.flat()];
  }

  copy(): Subject {
    const copy = new Subject(this.algorithm);
    copy.#registers = this.#registers.slice();
    for (let i = 0; i < this.#log.size; i++) copy.#log.push(this.#log.time(i), this.#log.cost(i));
    return copy;
  }
}

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
      const subject = new Subject(algorithm);
      const before = subject.state;
      const out = subject.step(quota, START, 0);
      assert.deepEqual([out[ALLOWED], out[REMAINING], out[RESET_AFTER]], [1, capacity, 0]);
      assert.deepEqual(subject.state, before);
    });

    test('fills every slot, and stores whole numbers only', (quota, capacity) => {
      const subject = new Subject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const out = subject.step(quota, now, cost);
        assert.ok(!out.includes(NaN), `slot ${out.indexOf(NaN)} was not filled`);
        assert.ok(subject.state.every(Number.isSafeInteger), `not all whole: ${subject.state.join(', ')}`);
        assert.ok(
          out[REMAINING]! >= 0 && out[REMAINING]! <= capacity,
          `${out[REMAINING]} remain of ${capacity}`,
        );
      }
    });

    test('takes nothing by a denial, and lifts it exactly at retryAfterMs', (quota, capacity) => {
      const subject = new Subject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const before = subject.copy().step(quota, now, 0)[REMAINING];
        const out = subject.step(quota, now, cost);
        if (out[ALLOWED] === 1) continue;
        const wait = out[RETRY_AFTER]!;
        assert.equal(out[REMAINING], before);
        assert.equal(wait === Infinity, cost > capacity);
        if (wait === Infinity) continue;
        assert.equal(subject.copy().step(quota, now + wait - 1, cost)[ALLOWED], 0);
        assert.equal(subject.copy().step(quota, now + wait, cost)[ALLOWED], 1);
      }
    });

    test('has forgotten everything after idleMs', (quota, capacity) => {
      const subject = new Subject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const at = Math.max(now, subject.step(quota, now, cost)[CHARGED_AT]!);
        const later = subject.copy().step(quota, at + algorithm.idleMs(quota), 0);
        assert.deepEqual([later[REMAINING], later[RESET_AFTER]], [capacity, 0]);
      }
    });

    test('gives back what a charge took', (quota, capacity) => {
      const subject = new Subject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const before = subject.copy().step(quota, now, 0);
        const charged = subject.copy();
        const out = charged.step(quota, now, cost);
        if (out[ALLOWED] === 1) {
          const { limit, windowMs } = quota;
          charged.refund(quota, now, {
            cost,
            limit,
            windowMs,
            chargedAt: out[CHARGED_AT]!,
            mark: out[MARK]!,
          });
          const after = charged.step(quota, now, 0);
          assert.deepEqual([after[REMAINING], after[RESET_AFTER]], [before[REMAINING], before[RESET_AFTER]]);
        }
        subject.step(quota, now, cost);
      }
    });

    test('holds nobody whom it denies', (quota, capacity) => {
      const subject = new Subject(algorithm);
      for (const { now, cost } of calls(quota, capacity)) {
        const out = subject.step(quota, now, cost);
        assert.ok(out[ALLOWED] === 1 || out[DELAY] === 0);
      }
    });
  });
}
