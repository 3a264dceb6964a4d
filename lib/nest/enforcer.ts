import { HttpException, type ExecutionContext, type HttpServer } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import { type Clock } from '../core/clock.js';
import { DecidedVerdict } from '../core/decided-verdict.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import type { MaybePromise } from '../core/driver.js';
import { enforcementSuspended } from '../core/enforcement.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Verdict } from '../core/verdict.js';
import { holdUntil } from '../core/waiting-lines.js';
import { retryAfterSeconds, type HeaderWriter } from '../http/rate-limit-headers.js';
import { allOf, andThen, chargeFor } from './charge-request.js';
import { refundUncounted } from './counted-outcome.js';
import { denialOf, windowMsOf } from './denial.js';
import { decidedAtInterceptor, type HandlerPlan, type PlannedPolicy } from './handler-plan.js';
import type { HandlerPlans } from './handler-plans.js';
import { headerSetter, HttpCall, rawResponse, type CallSources } from './http/http-call.js';
import { invocationOf, startInvocation, type Invocation } from './invocation.js';
import { OtherCall } from './other-call.js';

/** What the enforcer is made of. */
export interface EnforcerParts {
  readonly limiter: RateLimiter;
  readonly plans: HandlerPlans;
  readonly sources: CallSources;
  readonly writeHeaders: HeaderWriter;
  readonly clock: Clock;
  readonly report: DiagnosticSink;
  readonly enabled: boolean;
  readonly skip: ((call: CallContext) => boolean | Promise<boolean>) | undefined;
  readonly denied: ((call: CallContext, verdicts: readonly Verdict[]) => Error) | undefined;
  /** Asked for when it is needed: a testing module has none until its application is made. */
  readonly adapter: () => HttpServer | undefined;
}

/** The status of a call whose client left before it was let go. Nobody sees it but logs. */
const CLIENT_CLOSED_REQUEST = 499;

/** Has the policies of a handler decided: some before all guards, some after them. */
export class Enforcer {
  readonly #parts: EnforcerParts;

  constructor(parts: EnforcerParts) {
    this.#parts = parts;
  }

  /**
   * The guard's part. Synchronous as long as the driver and the policies' functions are.
   * @throws the denial
   */
  guard(context: ExecutionContext): MaybePromise<boolean> {
    const plan = this.#planOf(context);
    if (plan === undefined) return true;
    const invocation = invocationOf(context) ?? this.#start(context, plan);
    if (invocation.guarded) return true;
    invocation.guarded = true;
    return andThen(this.#parts.skip?.(invocation.call) ?? false, (skipped) => {
      if (skipped) return true;
      const now: PlannedPolicy[] = [];
      for (const planned of plan.policies) {
        if (decidedAtInterceptor(planned)) invocation.deferred.push(planned);
        else now.push(planned);
      }
      return this.#check(invocation, now, true);
    });
  }

  /**
   * The interceptor's part: what could not be decided before the other guards had run.
   * @throws the denial; what the guard had charged is given back then
   */
  intercept(context: ExecutionContext): MaybePromise<Invocation | undefined> {
    const plan = this.#planOf(context);
    if (plan === undefined) return undefined;
    let invocation = invocationOf(context);
    if (invocation === undefined) {
      invocation = this.#start(context, plan);
      // The guard has left no trace: on this transport there is none, or the guard is not bound here.
      invocation.deferred = plan.policies.filter((planned) => decidedAtInterceptor(planned));
    }
    if (invocation.intercepted) return undefined;
    invocation.intercepted = true;
    const { deferred } = invocation;
    invocation.deferred = [];
    return andThen(this.#check(invocation, deferred, false), () => invocation);
  }

  /** The handler's result or stream has ended. An HTTP call ends with its response instead. */
  ended(invocation: Invocation): void {
    if (invocation.call.transport === 'http') return;
    const { limiter, report } = this.#parts;
    refundUncounted(limiter, invocation.verdicts, invocation.ended, report);
  }

  #planOf(context: ExecutionContext): HandlerPlan | undefined {
    if (!this.#parts.enabled || enforcementSuspended()) return undefined;
    const plan = this.#parts.plans.of(context.getClass(), context.getHandler());
    return plan.policies.length === 0 ? undefined : plan;
  }

  #start(context: ExecutionContext, plan: HandlerPlan): Invocation {
    if (context.getType() === 'http') {
      return startInvocation(context, plan, new HttpCall(context, plan.methodName, this.#parts.sources));
    }
    const type = context.getType<string>();
    this.#parts.report({
      code: 'RL_NOT_AVAILABLE',
      message: `this version does not know who calls over '${type}': address and user policies count all such calls together`,
    });
    return startInvocation(context, plan, new OtherCall(context, plan.methodName));
  }

  #check(invocation: Invocation, policies: readonly PlannedPolicy[], atGuard: boolean): MaybePromise<true> {
    if (policies.length === 0) return true;
    const { limiter, report } = this.#parts;
    const { call } = invocation;
    const canDefer = atGuard && call.transport === 'http';
    const charges = allOf(policies.map((planned) => chargeFor(planned, call, canDefer, report)));
    return andThen(charges, (found) => {
      const requests = found.filter((charge) => typeof charge === 'object');
      found.forEach((charge, i) => {
        if (charge === 'deferred') invocation.deferred.push(policies[i]!);
      });
      return andThen(limiter.decide(requests, call), (verdicts) => this.#settle(invocation, verdicts));
    });
  }

  /** Tells the client, and lets the call go, holds it, or denies it. */
  #settle(invocation: Invocation, verdicts: readonly Verdict[]): MaybePromise<true> {
    if (verdicts.length === 0) return true;
    const earlier = invocation.verdicts.length;
    invocation.verdicts.push(...verdicts);
    this.#tellClient(invocation);
    let delayMs = 0;
    for (const verdict of verdicts) {
      if (!verdict.allowed) return this.#deny(invocation, earlier);
      delayMs = Math.max(delayMs, verdict.delayMs);
    }
    if (verdicts.some(hasCountIf)) this.#awaitOutcome(invocation);
    return delayMs > 0 ? this.#hold(invocation, delayMs) : true;
  }

  #deny(invocation: Invocation, earlier: number): MaybePromise<never> {
    const { limiter, denied } = this.#parts;
    const { verdicts, call } = invocation;
    const given = verdicts.slice(0, earlier).map((verdict) => limiter.refundVerdict(verdict));
    const fail = (): never => {
      throw denied?.(call, verdicts) ?? denialOf(verdicts);
    };
    return andThen(allOf(given), fail);
  }

  #tellClient({ call, verdicts }: Invocation): void {
    const adapter = this.#parts.adapter();
    if (call.transport !== 'http' || adapter === undefined) return;
    const shown = verdicts.filter(isEnforced);
    const set = headerSetter(adapter, call.response);
    this.#parts.writeHeaders(set, shown, (index) => windowMsOf(shown[index]!));
    if (shown.every(({ allowed }) => allowed)) return;
    const seconds = retryAfterSeconds(shown);
    if (seconds !== undefined) set('Retry-After', String(seconds));
    set('Cache-Control', 'no-store');
  }

  /** Holds the call until its turn. A client that leaves meanwhile is let go, and its place with it. */
  async #hold(invocation: Invocation, delayMs: number): Promise<true> {
    const { clock, limiter } = this.#parts;
    const end = clock.now() + delayMs;
    if (invocation.call.transport !== 'http') {
      await holdUntil(clock, end);
      return true;
    }
    const response = rawResponse(invocation.call.response);
    const left = new AbortController();
    const leave = () => left.abort();
    response.once('close', leave);
    try {
      if (response.destroyed) leave();
      await holdUntil(clock, end, left.signal);
      return true;
    } catch {
      for (const verdict of invocation.verdicts.toReversed()) await limiter.refundVerdict(verdict);
      throw new HttpException('Client Closed Request', CLIENT_CLOSED_REQUEST);
    } finally {
      response.off('close', leave);
    }
  }

  /** Asks `countIf` when the response has gone out, or will never go. Other transports: see the interceptor. */
  #awaitOutcome(invocation: Invocation): void {
    if (invocation.awaited || invocation.call.transport !== 'http') return;
    invocation.awaited = true;
    const { limiter, report } = this.#parts;
    const response = rawResponse(invocation.call.response);
    response.once('close', () => {
      const outcome = response.headersSent
        ? { ...invocation.ended, statusCode: response.statusCode }
        : invocation.ended;
      refundUncounted(limiter, invocation.verdicts, outcome, report);
    });
  }
}

function hasCountIf(verdict: Verdict): boolean {
  return DecidedVerdict.counterOf(verdict)?.policy.countIf !== undefined;
}

function isEnforced(verdict: Verdict): boolean {
  return DecidedVerdict.counterOf(verdict)?.policy.mode !== 'shadow';
}
