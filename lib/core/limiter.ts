import type { Duration } from './duration.js';
import type { Policy, PolicyOptions } from './policy.js';
import type { PolicySlot } from './policy-registry.js';
import {
  requireCost,
  type AcquireOptions,
  type ConsumeOptions,
  type RateLimiter,
  type RateLimiterStatus,
} from './rate-limiter.js';
import { boundSubject, GLOBAL_SUBJECT } from './subject.js';
import type { Verdict } from './verdict.js';

/** A limiter of one policy. Subjects default to `global`, costs to the policy's own. */
export interface Limiter {
  /** The policy as it is now. */
  readonly policy: Policy;
  consume(subject?: string, options?: ConsumeOptions): Promise<Verdict>;
  /**
   * As `consume`, without a promise, at a time that may be one event-loop turn old: so a charge may be dated that
   * much too early. Memory driver only.
   * @throws RateLimitError with `RL_NOT_SYNCHRONOUS` elsewhere
   */
  consumeSync(subject?: string, options?: ConsumeOptions): Verdict;
  tryAcquire(subject?: string, options?: ConsumeOptions): Promise<boolean>;
  /** As `consumeSync`, yes or no: allocates nothing in steady state. */
  tryAcquireSync(subject?: string, cost?: number): boolean;
  acquire(subject?: string, options?: AcquireOptions): Promise<Verdict>;
  peek(subject?: string): Promise<Verdict>;
  refund(verdict: Verdict): Promise<void>;
  refund(subject?: string, cost?: number): Promise<void>;
  reset(subject?: string): Promise<void>;
  block(subject: string, duration: Duration): Promise<void>;
  unblock(subject: string): Promise<void>;
  /** Changes the policy while it runs: the next decision sees it. */
  update(patch: Partial<PolicyOptions>): Promise<Policy>;
  status(): RateLimiterStatus;
  /** Frees what it opened, and nothing else. */
  close(): Promise<void>;
}

export class BoundLimiter implements Limiter {
  readonly #limiter: RateLimiter;
  readonly #slot: PolicySlot;
  readonly #ownsLimiter: boolean;

  /** @param ownsLimiter whether `close` closes the limiter: not where it serves other policies too */
  constructor(limiter: RateLimiter, slot: PolicySlot, ownsLimiter = false) {
    this.#limiter = limiter;
    this.#slot = slot;
    this.#ownsLimiter = ownsLimiter;
  }

  get policy(): Policy {
    return this.#slot.current;
  }

  async consume(subject?: string, options?: ConsumeOptions): Promise<Verdict> {
    return this.#limiter.charge(this.#slot, subject, options?.cost);
  }

  consumeSync(subject?: string, options?: ConsumeOptions): Verdict {
    return this.#limiter.chargeSync(this.#slot, subject, options?.cost);
  }

  async tryAcquire(subject?: string, options?: ConsumeOptions): Promise<boolean> {
    return this.#limiter.tryCharge(this.#slot, subject, options?.cost);
  }

  tryAcquireSync(subject: string = GLOBAL_SUBJECT, cost?: number): boolean {
    const policy = this.#slot.current;
    const fast = this.#limiter.directSide;
    if (fast === undefined || typeof subject !== 'string' || subject.length === 0)
      return this.#trySync(subject, cost);
    const units = cost ?? (typeof policy.cost === 'number' ? policy.cost : 1);
    if (!Number.isSafeInteger(units) || units < 1) requireCost(policy.name, units);
    return fast.tryTake(policy, policy, boundSubject(subject), units) || policy.mode === 'shadow';
  }

  #trySync(subject: string, cost: number | undefined): boolean {
    const verdict = this.#limiter.chargeSync(this.#slot, subject, cost);
    if (!verdict.allowed || verdict.delayMs === 0) return verdict.allowed;
    void this.#limiter.refundVerdict(verdict);
    return false;
  }

  acquire(subject?: string, options?: AcquireOptions): Promise<Verdict> {
    return this.#limiter.awaitCharge(this.#slot, subject, options);
  }

  peek(subject?: string): Promise<Verdict> {
    return this.#limiter.look(this.#slot, subject);
  }

  refund(verdict: Verdict): Promise<void>;
  refund(subject?: string, cost?: number): Promise<void>;
  async refund(first?: Verdict | string, cost = 1): Promise<void> {
    if (typeof first === 'object') return this.#limiter.refundVerdict(first);
    return this.#limiter.giveBack(this.#slot, first, cost);
  }

  reset(subject?: string): Promise<void> {
    return this.#limiter.forget(this.#slot, subject);
  }

  block(subject: string, duration: Duration): Promise<void> {
    return this.#limiter.startBlock(this.#slot, subject, duration);
  }

  unblock(subject: string): Promise<void> {
    return this.#limiter.liftBlock(this.#slot, subject);
  }

  async update(patch: Partial<PolicyOptions>): Promise<Policy> {
    return this.#limiter.swapPolicy(this.#slot, patch);
  }

  status(): RateLimiterStatus {
    return this.#limiter.status();
  }

  async close(): Promise<void> {
    if (this.#ownsLimiter) await this.#limiter.close();
  }
}
