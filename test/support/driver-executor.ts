import { ALGORITHMS } from '../../lib/algorithms/index.js';
import type { Algorithm, Receipt } from '../../lib/core/algorithm.js';
import type { Charge, Decision, Driver } from '../../lib/core/driver.js';
import { completePolicy } from '../../lib/core/policy-completion.js';
import type { CompleteQuota, Executor, Outcome } from './run-vectors.js';

let subjects = 0;

/** Runs vectors through a driver, each on a subject of its own, at a time that the test sets. */
export function driverExecutor(
  driver: Driver,
  algorithm: Algorithm,
  setTime: (now: number) => void,
): Executor<Receipt> {
  const subject = `vector:${++subjects}`;
  const chargeOf = (quota: CompleteQuota, cost: number): Charge => {
    const { limit, window, burst, maxDelay: maxDelayMs } = quota;
    const policy = completePolicy('vectors', { limit: 1, window: 1_000, algorithm }, 'policy', {
      algorithms: ALGORITHMS,
      report: () => {},
    });
    return { policy, quota: { limit, windowMs: window, burst, maxDelayMs }, subject, cost };
  };
  return {
    async take(now, quota, cost) {
      setTime(now);
      const [decision] = await driver.decide([chargeOf(quota, cost)]);
      return { outcome: outcomeOf(decision!), charge: decision!.receipt! };
    },
    async peek(now, quota) {
      setTime(now);
      return outcomeOf(await driver.peek(chargeOf(quota, 1)));
    },
    async refund(now, quota, receipt) {
      setTime(now);
      await driver.refund(chargeOf(quota, receipt.cost), receipt);
    },
    async giveBack(now, quota, cost) {
      setTime(now);
      await driver.giveBack(chargeOf(quota, cost), cost);
    },
  };
}

function outcomeOf({ allowed, remaining, retryAfterMs, resetAfterMs, delayMs }: Decision): Outcome {
  return { allowed, remaining, retryAfterMs, resetAfterMs, delayMs };
}
