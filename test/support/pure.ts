import type { Algorithm, Quota, Receipt } from '../../lib/core/algorithm.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';
import type { CompleteQuota, Executor } from './run-vectors.js';

/** Runs vectors through the bare arithmetic. */
export function pureExecutor(algorithm: Algorithm): Executor<Receipt> {
  const subject = new AlgorithmSubject(algorithm);
  return {
    take(now, quota, cost) {
      const { receipt, ...outcome } = subject.step(toQuota(quota), now, cost);
      return { outcome, charge: receipt };
    },
    peek(now, quota) {
      const { receipt: _, ...next } = subject.copy().step(toQuota(quota), now, 1);
      const { remaining, resetAfterMs } = subject.copy().step(toQuota(quota), now, 0);
      return { ...next, remaining, resetAfterMs };
    },
    refund(now, quota, receipt) {
      subject.refund(toQuota(quota), now, receipt.cost, receipt);
    },
    giveBack(now, quota, cost) {
      subject.refund(toQuota(quota), now, cost, null);
    },
  };
}

function toQuota({ limit, window, burst, maxDelay }: CompleteQuota): Quota {
  return { limit, windowMs: window, burst, maxDelayMs: maxDelay };
}
