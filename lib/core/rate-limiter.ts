import { createHmac } from 'node:crypto';
import type { CallContext } from './call-context.js';
import type { Clock } from './clock.js';
import { DecidedVerdict } from './decided-verdict.js';
import type {
  Charge,
  Counter,
  Decision,
  Driver,
  DriverStatus,
  MaybePromise,
  SynchronousDriver,
} from './driver.js';
import { parseDuration, type Duration } from './duration.js';
import { enforcementSuspended } from './enforcement.js';
import { RateLimitConfigError, RateLimitError } from './errors.js';
import { BoundLimiter, type Limiter } from './limiter.js';
import type { ObserverHub } from './observer.js';
import type { Policy, PolicyOptions } from './policy.js';
import type { PolicySurroundings } from './policy-completion.js';
import type { PolicyRegistry, PolicySlot } from './policy-registry.js';
import { overrideQuota, type PolicyResolver } from './policy-resolver.js';
import { boundSubject, GLOBAL_SUBJECT } from './subject.js';
import type { Verdict } from './verdict.js';
import { WaitingLines } from './waiting-lines.js';

/** What a running limiter says of itself. */
export type RateLimiterStatus = DriverStatus;

export interface ConsumeOptions {
  /** Whole units ≥ 1. Default: the policy's own cost where that is a number, else 1. */
  readonly cost?: number;
}

export interface AcquireOptions extends ConsumeOptions {
  /** How long to wait at most, in milliseconds. Default 30,000. */
  readonly maxWaitMs?: number;
  readonly signal?: AbortSignal;
}

/** One charge, by the policy's place and the subject as callers know it. */
export interface ChargeRequest {
  readonly slot: PolicySlot;
  readonly subject: string;
  readonly cost: number;
}

const DEFAULT_MAX_WAIT_MS = 30_000;
/** What a denial for an unreachable store suggests to wait. */
const UNAVAILABLE_RETRY_MS = 1_000;

export interface RateLimiterParts {
  readonly registry: PolicyRegistry;
  readonly surroundings: PolicySurroundings;
  readonly driver: Driver;
  /** Whether `close` closes the driver: not one that somebody else made. */
  readonly ownsDriver: boolean;
  readonly clock: Clock;
  readonly observers: ObserverHub;
  readonly enabled: boolean;
  /** HMAC secret; `undefined` leaves subjects as they are. */
  readonly hashKeys?: string | undefined;
}

/**
 * Decides charges: turns policies and subjects into counters, has the driver decide them, and makes verdicts of
 * what it answers. The one place that everything above (guard, aspect, service, builder) goes through.
 */
export class RateLimiter {
  readonly #parts: RateLimiterParts;
  readonly #lines: WaitingLines;
  readonly #observers: ObserverHub;
  #resolver: PolicyResolver | undefined;
  #closed = false;
  #vet: (slot: PolicySlot, candidate: Policy) => void = () => {};
  /** The driver's synchronous side, where what is set up leaves nothing to do before or after it. */
  #direct: SynchronousDriver | undefined;

  constructor(parts: RateLimiterParts) {
    this.#parts = parts;
    this.#lines = new WaitingLines(parts.clock);
    this.#observers = parts.observers;
    if (parts.enabled && parts.hashKeys === undefined) this.#direct = parts.driver.synchronous;
  }

  /** Gives subjects quotas of their own from now on. */
  useResolver(resolver: PolicyResolver): void {
    this.#resolver = resolver;
    this.#direct = undefined;
  }

  /** @internal Has changes of policies looked at before they are made; `vet` throws where one can't work. */
  vetChanges(vet: (slot: PolicySlot, candidate: Policy) => void): void {
    this.#vet = vet;
  }

  /**
   * Charges one policy. A denial is a verdict; a failure is an exception.
   * @throws RateLimitConfigError for an unknown policy or a cost that is not a whole number ≥ 1
   */
  async consume(policy: string, subject?: string, options?: ConsumeOptions): Promise<Verdict> {
    return this.charge(this.slot(policy), subject, options?.cost);
  }

  /** Charges several counters together: all of them, or none. Verdicts come in the order of the charges. */
  async consumeAll(
    charges: readonly { readonly policy: string; readonly subject: string; readonly cost?: number }[],
  ): Promise<Verdict[]> {
    return this.decide(
      charges.map(({ policy, subject, cost }) => this.#request(this.slot(policy), subject, cost)),
    );
  }

  /** Whether one call may go now, without waiting. Default policy: `default`. */
  async tryAcquire(policy = 'default', subject?: string, options?: ConsumeOptions): Promise<boolean> {
    return this.tryCharge(this.slot(policy), subject, options?.cost);
  }

  /**
   * Waits its turn, in arrival order within this process, at most `maxWaitMs`; then the verdict is a denial.
   * @throws the signal's reason when it is aborted: the place is free at once, and nothing was consumed
   */
  async acquire(policy: string, subject?: string, options?: AcquireOptions): Promise<Verdict> {
    return this.awaitCharge(this.slot(policy), subject, options);
  }

  /** Looks without consuming: `allowed` for a call of cost 1, what is left now. */
  async peek(policy: string, subject?: string): Promise<Verdict> {
    return this.look(this.slot(policy), subject);
  }

  /** Gives back exactly what that verdict took, where it took it, at most once. */
  refund(verdict: Verdict): Promise<void>;
  /** Gives back `cost` (1) of the current window, never below nothing used. */
  refund(policy: string, subject: string, cost?: number): Promise<void>;
  async refund(first: Verdict | string, subject?: string, cost = 1): Promise<void> {
    if (typeof first !== 'string') return this.refundVerdict(first);
    return this.giveBack(this.slot(first), subject, cost);
  }

  /** Forgets what the subject has used, and lifts its block. */
  async reset(policy: string, subject: string): Promise<void> {
    return this.forget(this.slot(policy), subject);
  }

  /** Denies the subject for a while, whatever is left of its quota. */
  async block(policy: string, subject: string, duration: Duration): Promise<void> {
    return this.startBlock(this.slot(policy), subject, duration);
  }

  async unblock(policy: string, subject: string): Promise<void> {
    return this.liftBlock(this.slot(policy), subject);
  }

  /** The same methods, bound to one policy. */
  limiter(policy: string): Limiter {
    return new BoundLimiter(this, this.slot(policy));
  }

  /** Every policy as it is now. */
  policies(): readonly Policy[] {
    return this.#parts.registry.all();
  }

  /**
   * Changes a policy while it runs. The next decision sees it; what was used is kept, unless the algorithm changes.
   * @throws RateLimitConfigError where the patch is wrong; then nothing has changed
   */
  async updatePolicy(
    name: string,
    patch: Partial<PolicyOptions>,
    options: { readonly scope?: 'process' | 'fleet' } = {},
  ): Promise<Policy> {
    const { scope = 'process' } = options;
    if (scope === 'fleet') {
      throw new RateLimitConfigError({
        code: 'RL_NOT_AVAILABLE',
        path: 'updatePolicy.scope',
        expected: "'process': this version has no policy source that reaches the fleet",
        received: scope,
      });
    }
    if (scope !== 'process') {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_OPTION',
        path: 'updatePolicy.scope',
        expected: "'process'",
        received: scope,
      });
    }
    return this.swapPolicy(this.slot(name), patch);
  }

  status(): RateLimiterStatus {
    return this.#parts.driver.status();
  }

  /** Frees what this limiter opened, and nothing else. Whoever waits is rejected with `RL_CLOSED`. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#direct = undefined;
    this.#lines.close();
    if (this.#parts.ownsDriver) await this.#parts.driver.close();
  }

  // What follows serves the layers above and the bound limiter; the service's contract is above.

  /** @internal */
  slot(policy: string): PolicySlot {
    return this.#parts.registry.slot(policy);
  }

  /** @internal Decides charges together; synchronous where the driver and the resolver are. */
  decide(requests: readonly ChargeRequest[], call?: CallContext): MaybePromise<Verdict[]> {
    this.#requireOpen();
    if (requests.length === 0) return [];
    if (this.#idle) return requests.map((request) => this.#unlimited(request));
    if (this.#resolver === undefined) {
      return this.#decideCharges(
        requests.map((request) => this.#chargeOf(request)),
        requests,
      );
    }
    return this.#withOverrides(this.#resolver, requests, call);
  }

  /** @internal */
  charge(slot: PolicySlot, subject?: string, cost?: number): MaybePromise<Verdict> {
    return onlyOne(this.decide([this.#request(slot, subject, cost)]));
  }

  /** @internal */
  async tryCharge(slot: PolicySlot, subject?: string, cost?: number): Promise<boolean> {
    const verdict = await this.charge(slot, subject, cost);
    if (!verdict.allowed || verdict.delayMs === 0) return verdict.allowed;
    await this.refundVerdict(verdict);
    return false;
  }

  /** @internal */
  async awaitCharge(slot: PolicySlot, subject?: string, options: AcquireOptions = {}): Promise<Verdict> {
    const { maxWaitMs = DEFAULT_MAX_WAIT_MS, signal } = options;
    const request = this.#request(slot, subject, options.cost);
    const wait = requireDuration('acquire.maxWaitMs', maxWaitMs);
    const attempt = {
      charge: () => onlyOne(this.decide([request])),
      refund: (verdict: Verdict) => void Promise.resolve(this.refundVerdict(verdict)).catch(() => {}),
    };
    return this.#lines.join(lineKey(slot, request.subject), attempt, wait, signal);
  }

  /** @internal */
  async look(slot: PolicySlot, subject = GLOBAL_SUBJECT): Promise<Verdict> {
    const request = this.#request(slot, subject, 1);
    if (this.#idle) return this.#unlimited(request);
    const counter = await this.#counterOf(request);
    const decision = await this.#asked('look', (driver) => driver.peek(counter));
    return new DecidedVerdict(counter, request.subject, decision);
  }

  /** @internal */
  refundVerdict(verdict: Verdict): MaybePromise<void> {
    if (!(verdict instanceof DecidedVerdict)) {
      throw new RateLimitError(
        'RL_NOT_REFUNDABLE',
        'refund() takes a verdict as consume() returned it: a copy of one does not know what it took',
      );
    }
    const taken = DecidedVerdict.release(verdict);
    if (taken === undefined) return;
    const done = this.#asked('refund', (driver) => driver.refund(taken.counter, taken.receipt));
    const wake = () => this.#lines.wake(lineKey(taken.counter.policy, verdict.subject));
    return done instanceof Promise ? done.then(wake) : wake();
  }

  /** @internal */
  async giveBack(slot: PolicySlot, subject: string | undefined, cost: number): Promise<void> {
    const counter = await this.#counterOf(this.#request(slot, subject, cost));
    await this.#asked('refund', (driver) => driver.giveBack(counter, cost));
    this.#wake(slot, subject);
  }

  /** @internal */
  async forget(slot: PolicySlot, subject?: string): Promise<void> {
    const counter = await this.#counterOf(this.#request(slot, subject, 1));
    await this.#asked('reset', (driver) => driver.reset(counter));
    this.#wake(slot, subject);
  }

  /** @internal */
  async startBlock(slot: PolicySlot, subject: string | undefined, duration: Duration): Promise<void> {
    const ms = requireDuration('block.duration', duration);
    const counter = await this.#counterOf(this.#request(slot, subject, 1));
    await this.#asked('block', (driver) => (ms === 0 ? driver.unblock(counter) : driver.block(counter, ms)));
  }

  /** @internal */
  async liftBlock(slot: PolicySlot, subject?: string): Promise<void> {
    const counter = await this.#counterOf(this.#request(slot, subject, 1));
    await this.#asked('unblock', (driver) => driver.unblock(counter));
    this.#wake(slot, subject);
  }

  /** @internal */
  swapPolicy(slot: PolicySlot, patch: Partial<PolicyOptions>): Policy {
    const previous = slot.current;
    const current = this.#parts.registry.patched(slot, patch);
    this.#vet(slot, current);
    slot.current = current;
    this.#parts.observers.emit('policyChange', { previous, current });
    this.#lines.wakeAll();
    return current;
  }

  /** @internal The shortest way into a synchronous driver; `undefined` where somebody has to see the decision. */
  get directSide(): SynchronousDriver | undefined {
    return enforcementSuspended() || this.#observers.listensToDecisions ? undefined : this.#direct;
  }

  /** @internal */
  chargeSync(slot: PolicySlot, subject?: string, cost?: number): Verdict {
    const synchronous = this.#requireSynchronous();
    const request = this.#request(slot, subject, cost);
    if (this.#idle) return this.#unlimited(request);
    const charge = this.#chargeOf(request);
    return this.#verdict(charge, request, synchronous.decideOne(charge));
  }

  /** @throws RateLimitError with `RL_NOT_SYNCHRONOUS` */
  #requireSynchronous(): SynchronousDriver {
    const { driver } = this.#parts;
    if (driver.synchronous !== undefined && this.#resolver === undefined) return driver.synchronous;
    throw new RateLimitError(
      'RL_NOT_SYNCHRONOUS',
      driver.synchronous === undefined
        ? `the driver '${driver.name}' can't decide without waiting; use consume() or tryAcquire()`
        : 'a policy resolver may have to wait; use consume() or tryAcquire()',
    );
  }

  get #idle(): boolean {
    return !this.#parts.enabled || enforcementSuspended();
  }

  /** @throws RateLimitError with `RL_CLOSED` */
  #requireOpen(): void {
    if (this.#closed) throw new RateLimitError('RL_CLOSED', 'the limiter was closed');
  }

  #request(slot: PolicySlot, subject = GLOBAL_SUBJECT, cost?: number): ChargeRequest {
    this.#requireOpen();
    if (typeof subject !== 'string' || subject === '') {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_SUBJECT',
        path: `${slot.name}.subject`,
        expected: 'text that is not empty',
        received: subject,
      });
    }
    const own = slot.current.cost;
    const units = cost ?? (typeof own === 'number' ? own : 1);
    return { slot, subject: boundSubject(subject), cost: requireCost(slot.name, units) };
  }

  #chargeOf({ slot, subject, cost }: ChargeRequest): Charge {
    const policy = slot.current;
    return { policy, quota: policy, subject: this.#stored(subject), cost };
  }

  #stored(subject: string): string {
    const { hashKeys } = this.#parts;
    if (hashKeys === undefined) return subject;
    return createHmac('sha256', hashKeys).update(subject).digest('base64url');
  }

  async #counterOf(request: ChargeRequest): Promise<Counter> {
    const charge = this.#chargeOf(request);
    if (this.#resolver === undefined) return charge;
    const overrides = await this.#resolver.resolve({ charges: [named(request)] });
    return {
      ...charge,
      quota: overrideQuota(charge.policy, overrides?.[request.slot.name], this.#parts.surroundings),
    };
  }

  async #withOverrides(
    resolver: PolicyResolver,
    requests: readonly ChargeRequest[],
    call: CallContext | undefined,
  ): Promise<Verdict[]> {
    const overrides = await resolver.resolve({ charges: requests.map(named), call });
    const charges = requests.map((request) => {
      const charge = this.#chargeOf(request);
      const override = overrides?.[request.slot.name];
      return override === undefined
        ? charge
        : { ...charge, quota: overrideQuota(charge.policy, override, this.#parts.surroundings) };
    });
    return this.#decideCharges(charges, requests);
  }

  #decideCharges(charges: readonly Charge[], requests: readonly ChargeRequest[]): MaybePromise<Verdict[]> {
    try {
      const decided = this.#parts.driver.decide(charges);
      if (!(decided instanceof Promise)) return this.#verdicts(charges, requests, decided);
      return decided.then(
        (decisions) => this.#verdicts(charges, requests, decisions),
        (error: unknown) => this.#withoutStore(charges, requests, error),
      );
    } catch (error) {
      return this.#withoutStore(charges, requests, error);
    }
  }

  #verdicts(
    charges: readonly Charge[],
    requests: readonly ChargeRequest[],
    decisions: readonly Decision[],
  ): Verdict[] {
    return decisions.map((decision, i) => this.#verdict(charges[i]!, requests[i]!, decision));
  }

  #verdict(charge: Charge, request: ChargeRequest, decision: Decision): Verdict {
    const verdict = new DecidedVerdict(charge, request.subject, decision);
    const { observers } = this.#parts;
    if (observers.listensToDecisions) {
      const outcome = decision.allowed ? 'allowed' : verdict.allowed ? 'shadow-denied' : 'denied';
      observers.emit('decision', { verdict, policy: charge.policy, cost: charge.cost, outcome });
    }
    return verdict;
  }

  /** Has the driver do something other than decide: no `onUnavailable` answers for that. */
  #asked<T>(verb: string, ask: (driver: Driver) => MaybePromise<T>): MaybePromise<T> {
    try {
      const answer = ask(this.#parts.driver);
      if (!(answer instanceof Promise)) return answer;
      return answer.catch((error: unknown) => {
        throw this.#failure(verb, error);
      });
    } catch (error) {
      throw this.#failure(verb, error);
    }
  }

  /** What callers get to see of a driver's error, of which observers are told. */
  #failure(verb: string, error: unknown): unknown {
    // An error of ours says that the input was wrong, or that nothing is decided any more.
    if (error instanceof RateLimitConfigError || isClosed(error)) return error;
    const { driver, observers } = this.#parts;
    observers.emit('driverError', { driver: driver.name, error });
    const reason = error instanceof Error ? `: ${error.message}` : '';
    return new RateLimitError(
      'RL_DRIVER_UNAVAILABLE',
      `the driver '${driver.name}' could not ${verb}${reason}`,
      {
        cause: error,
      },
    );
  }

  /** The store can't answer: the strictest `onUnavailable` of the group decides for all of it. */
  #withoutStore(charges: readonly Charge[], requests: readonly ChargeRequest[], error: unknown): Verdict[] {
    const failure = this.#failure('decide', error);
    const wanted = charges.map(({ policy }) => policy.onUnavailable);
    if (failure === error || wanted.some((answer) => answer === 'throw' || answer === 'fallback'))
      throw failure;
    return charges.map((charge, i) => {
      const allowed = charge.policy.onUnavailable === 'allow';
      const decision: Decision = {
        allowed,
        remaining: 0,
        retryAfterMs: allowed ? 0 : UNAVAILABLE_RETRY_MS,
        resetAfterMs: charge.quota.windowMs,
        delayMs: 0,
        servedBy: 'fallback',
        receipt: undefined,
      };
      return new DecidedVerdict(charge, requests[i]!.subject, decision, true);
    });
  }

  #unlimited(request: ChargeRequest): Verdict {
    const charge = this.#chargeOf(request);
    const { limit } = charge.quota;
    return new DecidedVerdict(charge, request.subject, {
      allowed: true,
      remaining: limit,
      retryAfterMs: 0,
      resetAfterMs: 0,
      delayMs: 0,
      servedBy: 'memory',
      receipt: undefined,
    });
  }

  #wake(slot: PolicySlot, subject = GLOBAL_SUBJECT): void {
    this.#lines.wake(lineKey(slot, boundSubject(subject)));
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof RateLimitError && error.code === 'RL_CLOSED';
}

/** @throws RateLimitConfigError where the cost is not a whole number ≥ 1 */
export function requireCost(policy: string, cost: unknown): number {
  if (Number.isSafeInteger(cost) && (cost as number) >= 1) return cost as number;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_COST',
    path: `${policy}.cost`,
    expected: 'a whole number ≥ 1',
    received: cost,
  });
}

function requireDuration(path: string, value: unknown): number {
  const ms = parseDuration(value);
  if (ms !== undefined) return ms;
  throw new RateLimitConfigError({
    code: 'RL_INVALID_DURATION',
    path,
    expected: "milliseconds or a duration such as '10s'",
    received: value,
  });
}

function onlyOne(verdicts: MaybePromise<Verdict[]>): MaybePromise<Verdict> {
  return verdicts instanceof Promise ? verdicts.then((all) => all[0]!) : verdicts[0]!;
}

function named({ slot, subject }: ChargeRequest) {
  return { policy: slot.name, subject };
}

function lineKey(policy: { readonly name: string }, subject: string): string {
  return `${policy.name}\n${subject}`;
}
