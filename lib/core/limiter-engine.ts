import type { CallContext } from './call-context.js';
import { chargeRequest, type ChargeRequest } from './charge-request.js';
import type { Clock } from './clock.js';
import { DecidedVerdict } from './decided-verdict.js';
import type { Charge, Counter, Decision, Driver, SynchronousDriver } from './driver.js';
import { requireDuration, type Duration } from './duration.js';
import { enforcementSuspended } from './enforcement.js';
import { RateLimitConfigError, RateLimitError } from './errors.js';
import type { AcquireOptions, RateLimiterStatus } from './limiter-options.js';
import { allOf, andThen, isPromiseLike, orElse, type MaybePromise } from './maybe-promise.js';
import type { ObserverHub, RateLimitObserver } from './observer.js';
import { canDelay, heldAtMost, startsBlock, withoutTaking } from './patience.js';
import type { Policy, PolicyOptions } from './policy.js';
import type { PolicySurroundings } from './policy-completion.js';
import type { PolicyChanges } from './policy-changes.js';
import type { PolicyRegistry, PolicySlot } from './policy-registry.js';
import { requireConcerns, type PolicyResolver } from './policy-resolver.js';
import type { PolicySources } from './policy-sources.js';
import { subjectHash } from './subject-hash.js';
import { SubjectQuotas } from './subject-quotas.js';
import { SupervisedDriver } from './supervised-driver.js';
import { decisionsWithoutStore, unanswered } from './unavailable.js';
import type { Verdict } from './verdict.js';
import { VerdictMaker } from './verdict-maker.js';
import { WaitingLines } from './waiting-lines.js';

const DEFAULT_MAX_WAIT_MS = 30_000;

/** What an engine is made of. */
export interface LimiterEngineParts {
  readonly registry: PolicyRegistry;
  readonly surroundings: PolicySurroundings;
  readonly changes: PolicyChanges;
  /** Opened already. */
  readonly sources: PolicySources;
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
export class LimiterEngine {
  readonly #parts: LimiterEngineParts;
  readonly #driver: SupervisedDriver;
  readonly #quotas: SubjectQuotas;
  readonly #lines: WaitingLines;
  readonly #observers: ObserverHub;
  readonly #verdictMaker: VerdictMaker;
  #closed = false;
  /** The driver's synchronous side, where what is set up leaves nothing to do before or after it. */
  #fastPath: SynchronousDriver | undefined;

  constructor(parts: LimiterEngineParts) {
    this.#parts = parts;
    this.#driver = new SupervisedDriver(parts.driver, parts.observers);
    this.#quotas = new SubjectQuotas(parts.surroundings, subjectHash(parts.hashKeys));
    this.#lines = new WaitingLines(parts.clock);
    this.#observers = parts.observers;
    this.#verdictMaker = new VerdictMaker(parts.observers);
    parts.observers.watch(this);
    parts.changes.onChanged = () => this.#lines.wakeAll();
    if (parts.enabled && parts.hashKeys === undefined) this.#fastPath = parts.driver.synchronous;
  }

  /**
   * Gives subjects quotas of their own from now on.
   * @throws RateLimitConfigError where it concerns policies that there are not
   */
  useResolver(resolver: PolicyResolver): void {
    if (typeof resolver.resolve !== 'function') {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_OPTION',
        path: 'resolver.resolve',
        expected: 'a function',
        received: (resolver as { readonly resolve: unknown }).resolve,
      });
    }
    requireConcerns(resolver.concerns);
    for (const name of resolver.concerns ?? []) this.#parts.registry.slot(name, 'resolver.concerns');
    this.#quotas.useResolver(resolver);
    this.#fastPath = undefined;
  }

  /** Has changes of policies looked at before they are made; `validate` throws where one can't work. */
  validateChanges(validate: (slot: PolicySlot, candidate: Policy) => void): void {
    this.#parts.changes.validate = validate;
  }

  /** @throws RateLimitConfigError with `RL_UNKNOWN_POLICY` */
  slot(policy: string): PolicySlot {
    return this.#parts.registry.slot(policy);
  }

  policies(): readonly Policy[] {
    return this.#parts.registry.all();
  }

  /**
   * A policy that nobody can ask for by name: for whoever keeps policies of his own. Those of one name and algorithm share
   * their counters.
   * @throws RateLimitConfigError where the options are wrong
   */
  draft(name: string, options: PolicyOptions, path: string): PolicySlot {
    return this.#parts.registry.draft(name, options, path);
  }

  /**
   * Decides charges together; synchronous where the driver and the resolver are.
   *
   * @param later what else of the call will be decided: see {@link SubjectQuotas.charges}
   */
  decide(
    requests: readonly ChargeRequest[],
    call?: CallContext,
    later?: readonly { readonly slot: PolicySlot }[],
  ): MaybePromise<readonly Verdict[]> {
    this.#requireOpen();
    if (requests.length === 0) return [];
    if (this.#idle) return requests.map((request) => this.#unlimited(request));
    return andThen(this.#quotas.charges(requests, call, later), (charges) =>
      this.#verdicts(requests, charges, () => this.#driver.decide(charges), call),
    );
  }

  charge(slot: PolicySlot, subject?: string, cost?: number): MaybePromise<Verdict> {
    return andThen(this.decide([this.#request(slot, subject, cost)]), onlyOne);
  }

  /** Whether one call may go now. One that would have to wait takes no place. */
  tryCharge(slot: PolicySlot, subject?: string, cost?: number): MaybePromise<boolean> {
    const request = this.#request(slot, subject, cost);
    if (this.#idle) return true;
    return andThen(this.#chargeWithin(request, 0), ({ allowed }) => allowed);
  }

  /** Waits for a turn: see {@link WaitingLines.join}. */
  async awaitCharge(
    slot: PolicySlot,
    subject?: string,
    options: AcquireOptions = {},
    call?: CallContext,
  ): Promise<Verdict> {
    const { maxWaitMs = DEFAULT_MAX_WAIT_MS, signal } = options;
    const request = this.#request(slot, subject, options.cost);
    const wait = requireDuration('acquire.maxWaitMs', maxWaitMs);
    signal?.throwIfAborted();
    if (this.#idle) return this.#unlimited(request);
    const attempt = {
      charge: (patienceMs: number) => this.#chargeWithin(request, patienceMs, call),
      isTooFar: ({ remaining }: Verdict) => canDelay(slot.current) && remaining >= request.cost,
      refund: (verdict: Verdict) => this.refundAll([verdict]),
      unanswered: () => {
        const charge = this.#quotas.plainCharge(request);
        return new DecidedVerdict(charge, request.subject, unanswered(charge, false), true);
      },
    };
    return this.#lines.join(lineKey(slot, request.subject), attempt, wait, signal);
  }

  /** Looks without consuming. */
  peek(slot: PolicySlot, subject?: string): MaybePromise<Verdict> {
    const request = this.#request(slot, subject, 1);
    if (this.#idle) return this.#unlimited(request);
    return andThen(this.#counterOf(request), (counter) =>
      andThen(
        this.#driver.peek(counter),
        (decision) => new DecidedVerdict(counter, request.subject, decision),
      ),
    );
  }

  /** Asks the driver about a policy's counter that nobody uses, by the policy's own numbers. */
  probe(slot: PolicySlot, subject: string): MaybePromise<unknown> {
    return this.#driver.peek(this.#quotas.plainCharge(this.#request(slot, subject, 1)));
  }

  /** Gives back what a verdict took, at most once. */
  refund(verdict: Verdict): MaybePromise<void> {
    if (!(verdict instanceof DecidedVerdict)) {
      throw new RateLimitError(
        'RL_NOT_REFUNDABLE',
        'refund() takes a verdict as consume() returned it: a copy of one does not know what it took',
      );
    }
    const taken = DecidedVerdict.release(verdict);
    if (taken === undefined) return;
    const { receipt } = taken;
    const counter = this.#today(taken.counter);
    return andThen(this.#driver.refund(counter, receipt), () =>
      this.#lines.wake(lineKey(counter.policy, verdict.subject)),
    );
  }

  /** Gives back what verdicts took, as far as the store can: observers are told where it can't. Never fails. */
  refundAll(verdicts: readonly Verdict[]): MaybePromise<void> {
    const refunds = verdicts.map((verdict) =>
      orElse<void>(
        () => this.refund(verdict),
        () => {},
      ),
    );
    return andThen(allOf(refunds), () => {});
  }

  /** Gives `cost` of the current window back. */
  giveBack(slot: PolicySlot, subject: string | undefined, cost: number): MaybePromise<void> {
    const request = this.#request(slot, subject, cost);
    return this.#change(request, (counter) => this.#driver.giveBack(counter, cost));
  }

  /** Forgets what was used, and lifts a block. */
  reset(slot: PolicySlot, subject?: string): MaybePromise<void> {
    return this.#change(this.#request(slot, subject, 1), (counter) => this.#driver.reset(counter));
  }

  block(slot: PolicySlot, subject: string | undefined, duration: Duration): MaybePromise<void> {
    const ms = requireDuration('block.duration', duration);
    if (ms === 0) return this.unblock(slot, subject);
    return andThen(this.#counterOf(this.#request(slot, subject, 1)), (counter) =>
      this.#driver.block(counter, ms),
    );
  }

  unblock(slot: PolicySlot, subject?: string): MaybePromise<void> {
    return this.#change(this.#request(slot, subject, 1), (counter) => this.#driver.unblock(counter));
  }

  /** @throws RateLimitConfigError where the patch is wrong; then nothing has changed */
  update(slot: PolicySlot, patch: Partial<PolicyOptions>): Policy {
    return this.#parts.changes.patch(slot, patch);
  }

  /**
   * Changes a policy on every instance, by a source that can.
   * @throws RateLimitConfigError where the patch is wrong or no source can; then nothing has changed
   */
  async updateFleet(slot: PolicySlot, patch: Partial<PolicyOptions>): Promise<Policy> {
    this.#requireOpen();
    return this.#parts.sources.update(slot, patch);
  }

  status(): RateLimiterStatus {
    return this.#driver.status();
  }

  /** Tells an observer what happens, from now on and until the function that it returns is called. */
  observe(observer: RateLimitObserver): () => void {
    this.#observers.add([observer]);
    return () => this.#observers.remove(observer);
  }

  /** Frees what was opened for this engine, and nothing else. Whoever waits is rejected with `RL_CLOSED`. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#fastPath = undefined;
    await this.#lines.close();
    await this.#parts.sources.close();
    if (this.#parts.ownsDriver) await this.#driver.close();
  }

  /** The shortest way into a synchronous driver; `undefined` where somebody has to see the decision. */
  get synchronousFastPath(): SynchronousDriver | undefined {
    return enforcementSuspended() || this.#observers.listensToDecisions ? undefined : this.#fastPath;
  }

  /** @throws RateLimitError with `RL_NOT_SYNCHRONOUS` */
  chargeSync(slot: PolicySlot, subject?: string, cost?: number): Verdict {
    const synchronous = this.#requireSynchronous();
    const request = this.#request(slot, subject, cost);
    if (this.#idle) return this.#unlimited(request);
    const charge = this.#quotas.plainCharge(request);
    return this.#verdictMaker.askNow(request, charge, () => this.#driver.decideOne(synchronous, charge));
  }

  /** As {@link tryCharge}, without a promise. */
  tryChargeSync(slot: PolicySlot, subject?: string, cost?: number): boolean {
    const synchronous = this.#requireSynchronous();
    const request = this.#request(slot, subject, cost);
    if (this.#idle) return true;
    const charge = this.#quotas.plainCharge(request);
    const hurried = heldAtMost(charge, 0);
    return this.#verdictMaker.askNow(request, charge, () => {
      const denial = this.#driver.decideOne(synchronous, hurried);
      if (hurried === charge || !startsBlock(charge, denial, 0)) return denial;
      // A driver that answers at once for one charge need not for a group: then the block starts when it does.
      const [own = denial] = resultsNow(this.#driver.decide(withoutTaking(charge)));
      return own.allowed ? denial : own;
    }).allowed;
  }

  /** What becomes of a charge that the fast path's driver threw at: its policy says. */
  withoutFastPath(policy: Policy, error: unknown): boolean {
    const charge = { policy, quota: policy, subject: '', cost: 1 };
    const [decision] = decisionsWithoutStore([charge], this.#driver.failure('decide', error));
    return decision!.allowed || policy.mode === 'shadow';
  }

  #requireSynchronous(): SynchronousDriver {
    const { synchronous, name } = this.#driver;
    if (synchronous !== undefined && this.#quotas.resolver === undefined) return synchronous;
    throw new RateLimitError(
      'RL_NOT_SYNCHRONOUS',
      synchronous === undefined
        ? `the driver '${name}' can't decide without waiting; use consume() or tryAcquire()`
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

  #request(slot: PolicySlot, subject?: string, cost?: number): ChargeRequest {
    this.#requireOpen();
    return chargeRequest(slot, subject, cost);
  }

  #counterOf(request: ChargeRequest): MaybePromise<Counter> {
    return andThen(this.#quotas.charges([request]), (charges) => charges[0]!);
  }

  /** A counter that was charged some time ago, by what it is counted by now; another algorithm has another counter. */
  #today(counter: Counter): Counter {
    const { current } = this.#parts.registry.slot(counter.policy.name);
    if (counter.policy === current || counter.policy.algorithm !== current.algorithm) return counter;
    const own = counter.quota === counter.policy;
    return { ...counter, policy: current, quota: own ? current : counter.quota };
  }

  /** Changes a counter, after which whoever waits for it looks again. */
  #change(request: ChargeRequest, change: (counter: Counter) => MaybePromise<void>): MaybePromise<void> {
    return andThen(this.#counterOf(request), (counter) =>
      andThen(change(counter), () => this.#lines.wake(lineKey(request.slot, request.subject))),
    );
  }

  /** Charges a call that is held at most `patienceMs`. */
  #chargeWithin(request: ChargeRequest, patienceMs: number, call?: CallContext): MaybePromise<Verdict> {
    this.#requireOpen();
    return andThen(this.#quotas.charges([request], call), (charges) => {
      const charge = charges[0]!;
      const hurried = heldAtMost(charge, patienceMs);
      const decide = () =>
        andThen(this.#driver.decide([hurried]), (decisions) => {
          const denial = decisions[0]!;
          if (hurried === charge || !startsBlock(charge, denial, patienceMs)) return decisions;
          return andThen(this.#driver.decide(withoutTaking(charge)), ([own]) => [
            own!.allowed ? denial : own!,
          ]);
        });
      return andThen(this.#verdicts([request], charges, decide, call), onlyOne);
    });
  }

  /** The verdicts of what `decide` answers, or of what the policies say where it can't. */
  #verdicts(
    requests: readonly ChargeRequest[],
    charges: readonly Charge[],
    decide: () => MaybePromise<readonly Decision[]>,
    call?: CallContext,
  ): MaybePromise<readonly Verdict[]> {
    // A resolver may have answered when it was too late.
    this.#requireOpen();
    return this.#verdictMaker.ask({ requests, charges, call }, decide);
  }

  /** The verdict while nothing is counted: all of the quota is there. */
  #unlimited(request: ChargeRequest): Verdict {
    const charge = this.#quotas.plainCharge(request);
    return new DecidedVerdict(charge, request.subject, {
      allowed: true,
      remaining: charge.policy.arithmetic.capacity(charge.quota),
      retryAfterMs: 0,
      resetAfterMs: 0,
      delayMs: 0,
      servedBy: 'memory',
      receipt: undefined,
    });
  }
}

function onlyOne(verdicts: readonly Verdict[]): Verdict {
  return verdicts[0]!;
}

/** What is there now; nothing where it has to be waited for, and what becomes of it then is not looked at. */
function resultsNow<T>(values: MaybePromise<readonly T[]>): readonly T[] {
  if (!isPromiseLike(values)) return values;
  values.then(undefined, () => {});
  return [];
}

function lineKey(policy: { readonly name: string }, subject: string): string {
  return `${policy.name}\n${subject}`;
}
