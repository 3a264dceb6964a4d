import { requireCost } from './charge-request.js';
import type { Duration } from './duration.js';
import type { LimiterEngine } from './limiter-engine.js';
import type { AcquireOptions, ConsumeOptions, RateLimiterStatus } from './limiter-options.js';
import type { Policy, PolicyOptions } from './policy.js';
import type { PolicySlot } from './policy-registry.js';
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
  readonly #engine: LimiterEngine;
  readonly #slot: PolicySlot;
  readonly #ownsEngine: boolean;

  /** @param ownsEngine whether `close` closes the engine: not where it serves other policies too */
  constructor(engine: LimiterEngine, slot: PolicySlot, ownsEngine = false) {
    this.#engine = engine;
    this.#slot = slot;
    this.#ownsEngine = ownsEngine;
  }

  get policy(): Policy {
    return this.#slot.current;
  }

  async consume(subject?: string, options?: ConsumeOptions): Promise<Verdict> {
    return this.#engine.charge(this.#slot, subject, options?.cost);
  }

  consumeSync(subject?: string, options?: ConsumeOptions): Verdict {
    return this.#engine.chargeSync(this.#slot, subject, options?.cost);
  }

  async tryAcquire(subject?: string, options?: ConsumeOptions): Promise<boolean> {
    return this.#engine.tryCharge(this.#slot, subject, options?.cost);
  }

  tryAcquireSync(subject: string = GLOBAL_SUBJECT, cost?: number): boolean {
    const policy = this.#slot.current;
    const fast = this.#engine.synchronousFastPath;
    if (fast === undefined || typeof subject !== 'string' || subject.length === 0)
      return this.#engine.tryChargeSync(this.#slot, subject, cost);
    const units = cost ?? (typeof policy.cost === 'number' ? policy.cost : 1);
    if (!Number.isSafeInteger(units) || units < 1) requireCost(policy.name, units);
    try {
      return fast.tryTake(policy, policy, boundSubject(subject), units) || policy.mode === 'shadow';
    } catch (error) {
      return this.#engine.withoutFastPath(policy, error);
    }
  }

  acquire(subject?: string, options?: AcquireOptions): Promise<Verdict> {
    return this.#engine.awaitCharge(this.#slot, subject, options);
  }

  async peek(subject?: string): Promise<Verdict> {
    return this.#engine.peek(this.#slot, subject);
  }

  refund(verdict: Verdict): Promise<void>;
  refund(subject?: string, cost?: number): Promise<void>;
  async refund(first?: Verdict | string, cost = 1): Promise<void> {
    if (typeof first === 'object') return this.#engine.refund(first);
    return this.#engine.giveBack(this.#slot, first, cost);
  }

  async reset(subject?: string): Promise<void> {
    return this.#engine.reset(this.#slot, subject);
  }

  async block(subject: string, duration: Duration): Promise<void> {
    return this.#engine.block(this.#slot, subject, duration);
  }

  async unblock(subject: string): Promise<void> {
    return this.#engine.unblock(this.#slot, subject);
  }

  async update(patch: Partial<PolicyOptions>): Promise<Policy> {
    return this.#engine.update(this.#slot, patch);
  }

  status(): RateLimiterStatus {
    return this.#engine.status();
  }

  async close(): Promise<void> {
    if (this.#ownsEngine) await this.#engine.close();
  }
}
