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
} from '../../lib/core/algorithm.js';
import { EntryRing } from '../../lib/drivers/memory/entry-ring.js';
import type { CompleteQuota, Executor, Outcome } from './run-vectors.js';

/** An outcome with what a receipt is made of. */
export interface PureOutcome extends Outcome {
  readonly receipt: Receipt;
}

/** Registers start here, not at 0: arithmetic that forgets the offset is found out. */
const OFFSET = 3;

/** The state of one subject and nothing else: the arithmetic without a driver. */
export class Subject {
  readonly #registers = new Float64Array(16).fill(NaN);
  #log = new EntryRing();
  readonly #out = new Float64Array(OUTCOME_SLOTS);

  constructor(readonly algorithm: Algorithm) {
    if (algorithm.shape === 'registers') this.#registers.fill(0, OFFSET, OFFSET + algorithm.registers.length);
  }

  step(quota: Quota, now: number, cost: number): PureOutcome {
    const { algorithm } = this;
    const out = this.#out.fill(NaN);
    if (algorithm.shape === 'registers') algorithm.step(this.#registers, OFFSET, quota, now, cost, out);
    else algorithm.step(this.#log, quota, now, cost, out);
    return {
      allowed: out[ALLOWED] === 1,
      remaining: out[REMAINING]!,
      retryAfterMs: out[RETRY_AFTER]!,
      resetAfterMs: out[RESET_AFTER]!,
      delayMs: out[DELAY]!,
      receipt: {
        cost,
        limit: quota.limit,
        windowMs: quota.windowMs,
        chargedAt: out[CHARGED_AT]!,
        mark: out[MARK]!,
      },
    };
  }

  refund(quota: Quota, now: number, cost: number, receipt: Receipt | null): void {
    const { algorithm } = this;
    if (algorithm.shape === 'registers') algorithm.refund(this.#registers, OFFSET, quota, now, cost, receipt);
    else algorithm.refund(this.#log, quota, now, cost, receipt);
  }

  /** Every number that is stored: the registers, or the log's times and costs. */
  get state(): number[] {
    const { algorithm } = this;
    if (algorithm.shape === 'registers')
      return [...this.#registers.slice(OFFSET, OFFSET + algorithm.registers.length)];
    return Array.from({ length: this.#log.size }, (_, i) => [this.#log.time(i), this.#log.cost(i)]).flat();
  }

  /** Registers around the subject's own, which belong to others. */
  get surroundings(): number[] {
    const own = this.algorithm.shape === 'registers' ? this.algorithm.registers.length : 0;
    return [...this.#registers.slice(0, OFFSET), ...this.#registers.slice(OFFSET + own)];
  }

  copy(): Subject {
    const copy = new Subject(this.algorithm);
    copy.#registers.set(this.#registers);
    for (let i = 0; i < this.#log.size; i++) copy.#log.push(this.#log.time(i), this.#log.cost(i));
    return copy;
  }
}

/** Runs vectors through the bare arithmetic. */
export function pureExecutor(algorithm: Algorithm): Executor<Receipt> {
  const subject = new Subject(algorithm);
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
