import { chargeRequest } from './charge-request.js';
import type { Duration } from './duration.js';
import { RateLimitConfigError } from './errors.js';
import { BoundLimiter, type Limiter } from './limiter.js';
import type { LimiterEngine } from './limiter-engine.js';
import type { AcquireOptions, ConsumeOptions, RateLimiterStatus } from './limiter-options.js';
import type { RateLimitObserver } from './observer.js';
import type { Policy, PolicyPatch } from './policy.js';
import type { Verdict } from './verdict.js';

/** The limiter of several policies, by their names. Subjects default to `global`, costs to the policy's own. */
export class RateLimiter {
  readonly #engine: LimiterEngine;

  /** @internal */
  constructor(engine: LimiterEngine) {
    this.#engine = engine;
  }

  /** @internal What decides for a limiter: for the other entry points of this package. */
  static engineOf(limiter: RateLimiter): LimiterEngine {
    return limiter.#engine;
  }

  /**
   * Charges one policy. A denial is a verdict; a failure is an exception.
   * @throws RateLimitConfigError for an unknown policy or a cost that is not a whole number ≥ 1
   */
  async consume(policy: string, subject?: string, options?: ConsumeOptions): Promise<Verdict> {
    return this.#engine.charge(this.#engine.slot(policy), subject, options?.cost);
  }

  /** Charges several counters together: all of them, or none. Verdicts come in the order of the charges. */
  async consumeAll(
    charges: readonly { readonly policy: string; readonly subject: string; readonly cost?: number }[],
  ): Promise<Verdict[]> {
    const requests = charges.map(({ policy, subject, cost }) =>
      chargeRequest(this.#engine.slot(policy), subject, cost),
    );
    return [...(await this.#engine.decide(requests))];
  }

  /** Whether one call may go now, without waiting. Default policy: `default`. */
  async tryAcquire(policy = 'default', subject?: string, options?: ConsumeOptions): Promise<boolean> {
    return this.#engine.tryCharge(this.#engine.slot(policy), subject, options?.cost);
  }

  /**
   * Waits its turn, in arrival order within this process, at most `maxWaitMs`; then the verdict is a denial.
   * @throws the signal's reason when it is aborted: the place is free at once, and nothing was consumed
   */
  async acquire(policy: string, subject?: string, options?: AcquireOptions): Promise<Verdict> {
    return this.#engine.awaitCharge(this.#engine.slot(policy), subject, options);
  }

  /** Looks without consuming: `allowed` for a call of cost 1, what is left now. */
  async peek(policy: string, subject?: string): Promise<Verdict> {
    return this.#engine.peek(this.#engine.slot(policy), subject);
  }

  /** Gives back exactly what that verdict took, where it took it, at most once. */
  refund(verdict: Verdict): Promise<void>;
  /** Gives back `cost` (1) of the current window, never below nothing used. */
  refund(policy: string, subject: string, cost?: number): Promise<void>;
  async refund(first: Verdict | string, subject?: string, cost = 1): Promise<void> {
    if (typeof first !== 'string') return this.#engine.refund(first);
    return this.#engine.giveBack(this.#engine.slot(first), subject, cost);
  }

  /** Forgets what the subject has used, and lifts its block. */
  async reset(policy: string, subject: string): Promise<void> {
    return this.#engine.reset(this.#engine.slot(policy), subject);
  }

  /** Denies the subject for a while, whatever is left of its quota. */
  async block(policy: string, subject: string, duration: Duration): Promise<void> {
    return this.#engine.block(this.#engine.slot(policy), subject, duration);
  }

  async unblock(policy: string, subject: string): Promise<void> {
    return this.#engine.unblock(this.#engine.slot(policy), subject);
  }

  /** The same methods, bound to one policy. */
  limiter(policy: string): Limiter {
    return new BoundLimiter(this.#engine, this.#engine.slot(policy));
  }

  /** Every policy as it is now. */
  policies(): readonly Policy[] {
    return this.#engine.policies();
  }

  /**
   * Changes a policy while it runs. The next decision sees it; what was used is kept, unless the algorithm changes.
   *
   * `process` (the default) changes it here, until a source changes the same fields. `fleet` has it stored by the last
   * source that can, as `redisSource()`: here it holds when the promise resolves, on other instances within a second,
   * and on those that start later. A field that is `undefined` is removed from what is stored.
   * @throws RateLimitConfigError where the patch is wrong, or no source reaches the fleet; then nothing has changed
   * @throws RateLimitError with `RL_REDIS_NOT_READY` or `RL_REDIS_TIMEOUT` where Redis can't be reached, or its answer
   * was lost: then nothing has changed here, and the change may have been stored
   */
  async updatePolicy(
    name: string,
    patch: PolicyPatch,
    options: { readonly scope?: 'process' | 'fleet' } = {},
  ): Promise<Policy> {
    const { scope = 'process' } = options;
    const slot = this.#engine.slot(name);
    if (scope === 'fleet') return this.#engine.updateFleet(slot, patch);
    if (scope === 'process') return this.#engine.update(slot, patch);
    throw new RateLimitConfigError({
      code: 'RL_INVALID_OPTION',
      path: 'updatePolicy.scope',
      expected: "'process' or 'fleet'",
      received: scope,
    });
  }

  /**
   * Tells an observer what happens, from now on and until the function that it returns is called. One that observes
   * already is not told twice.
   */
  observe(observer: RateLimitObserver): () => void {
    return this.#engine.observe(observer);
  }

  status(): RateLimiterStatus {
    return this.#engine.status();
  }

  /** Frees what this limiter opened, and nothing else. Whoever waits is rejected with `RL_CLOSED`. */
  close(): Promise<void> {
    return this.#engine.close();
  }
}
