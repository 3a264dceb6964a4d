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

/** What an algorithm answered, and what a receipt of it is made of. */
export interface SubjectOutcome {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly receipt: Receipt;
}

/** Registers start here, not at 0: arithmetic that forgets the offset is found out. */
const OFFSET = 3;

/** The state of one subject and nothing else: the arithmetic without a driver. */
export class AlgorithmSubject {
  readonly #registers = new Float64Array(16).fill(NaN);
  #log = new EntryRing();
  /** The slots of the last outcome: `NaN` where the algorithm wrote nothing. */
  readonly out = new Float64Array(OUTCOME_SLOTS);

  constructor(readonly algorithm: Algorithm) {
    if (algorithm.shape === 'registers') this.#registers.fill(0, OFFSET, OFFSET + algorithm.registers.length);
  }

  step(quota: Quota, now: number, cost: number): SubjectOutcome {
    const { algorithm } = this;
    const out = this.out.fill(NaN);
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
      return Array.from(this.#registers.subarray(OFFSET, OFFSET + algorithm.registers.length));
    return Array.from({ length: this.#log.size }, (_, i) => [this.#log.time(i), this.#log.cost(i)]).flat();
  }

  /** Registers around the subject's own, which belong to others. */
  get surroundings(): number[] {
    const own = this.algorithm.shape === 'registers' ? this.algorithm.registers.length : 0;
    return [...this.#registers.slice(0, OFFSET), ...this.#registers.slice(OFFSET + own)];
  }

  copy(): AlgorithmSubject {
    const copy = new AlgorithmSubject(this.algorithm);
    copy.#registers.set(this.#registers);
    for (let i = 0; i < this.#log.size; i++) copy.#log.push(this.#log.time(i), this.#log.cost(i));
    return copy;
  }
}
