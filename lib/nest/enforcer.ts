import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { enforcementSuspended } from '../core/enforcement.js';
import type { LimiterEngine } from '../core/limiter-engine.js';
import { andThen, mapAll, orElse, type MaybePromise } from '../core/maybe-promise.js';
import type { Verdict } from '../core/verdict.js';
import { chargeFor } from './charge-for.js';
import { refundUncounted } from './counted-outcome.js';
import { denialOf } from './denial.js';
import { decidedAtInterceptor, type HandlerPlan, type PlannedPolicy } from './handler-plan.js';
import type { HandlerPlans } from './handler-plans.js';
import { invocationOf, startInvocation, type Invocation } from './invocation.js';
import type { TransportOf } from './transports.js';
import { hasCountIf, isEnforced } from './verdicts.js';

/** What the enforcer is made of. */
export interface EnforcerParts {
  readonly engine: LimiterEngine;
  readonly plans: HandlerPlans;
  readonly transportOf: TransportOf;
  readonly report: DiagnosticSink;
  readonly enabled: boolean;
  readonly skip: ((call: CallContext) => boolean | Promise<boolean>) | undefined;
  readonly denied: ((call: CallContext, verdicts: readonly Verdict[]) => Error) | undefined;
}

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
    return orAnswered(invocation, () =>
      andThen(this.#parts.skip?.(invocation.call), (skipped) => {
        if (skipped === true) return true;
        const now: PlannedPolicy[] = [];
        for (const planned of plan.policies) {
          if (decidedAtInterceptor(planned)) invocation.deferred.push(planned);
          else now.push(planned);
        }
        return this.#check(invocation, now, true);
      }),
    );
  }

  /**
   * The interceptor's part: what could not be decided before the other guards had run.
   * @throws the denial; what the guard had charged is given back then
   */
  intercept(context: ExecutionContext): MaybePromise<Invocation | undefined> {
    const plan = this.#planOf(context);
    if (plan === undefined) return undefined;
    const guarded = invocationOf(context);
    const invocation = guarded ?? this.#start(context, plan);
    if (invocation.intercepted) return undefined;
    invocation.intercepted = true;
    const { deferred } = invocation;
    invocation.deferred = [];
    return andThen(
      orAnswered(invocation, () =>
        // Where the guard has left no trace it is not bound, and has put nothing off.
        andThen(guarded === undefined ? this.#dueUnguarded(invocation, plan) : deferred, (due) =>
          this.#check(invocation, due, false),
        ),
      ),
      () => invocation,
    );
  }

  #dueUnguarded({ call }: Invocation, { policies }: HandlerPlan): MaybePromise<readonly PlannedPolicy[]> {
    return andThen(this.#parts.skip?.(call), (skipped) =>
      skipped === true ? [] : policies.filter((planned) => decidedAtInterceptor(planned)),
    );
  }

  /** The handler's result or stream has ended. */
  ended(invocation: Invocation): void {
    if (invocation.transport.onEnd === undefined) this.#refundUncounted(invocation, undefined);
  }

  #planOf(context: ExecutionContext): HandlerPlan | undefined {
    if (!this.#parts.enabled || enforcementSuspended()) return undefined;
    const plan = this.#parts.plans.of(context.getClass(), context.getHandler());
    return plan.policies.length === 0 ? undefined : plan;
  }

  #start(context: ExecutionContext, plan: HandlerPlan): Invocation {
    return startInvocation(context, plan, this.#parts.transportOf(context.getType<string>()));
  }

  /** A call that goes no further, whether it was denied or something failed, gets back what it was charged so far. */
  #check(invocation: Invocation, policies: readonly PlannedPolicy[], atGuard: boolean): MaybePromise<true> {
    if (policies.length === 0) return true;
    return orElse<true>(
      () => this.#decide(invocation, policies, atGuard),
      (error) =>
        andThen(this.#parts.engine.refundAll(invocation.verdicts), () => {
          throw error;
        }),
    );
  }

  #decide(invocation: Invocation, policies: readonly PlannedPolicy[], canDefer: boolean): MaybePromise<true> {
    const { engine, report } = this.#parts;
    const { call } = invocation;
    const charges = mapAll(policies, (planned) => chargeFor(planned, call, canDefer, report));
    return andThen(charges, (found) => {
      const requests = found.filter((charge) => typeof charge === 'object');
      found.forEach((charge, i) => {
        if (charge === 'deferred') invocation.deferred.push(policies[i]!);
      });
      return andThen(engine.decide(requests, call, invocation.deferred), (verdicts) =>
        this.#settle(invocation, verdicts),
      );
    });
  }

  /** Tells the client, and lets the call go, holds it, or denies it. */
  #settle(invocation: Invocation, verdicts: readonly Verdict[]): MaybePromise<true> {
    if (verdicts.length === 0) return true;
    const { call, transport } = invocation;
    invocation.verdicts.push(...verdicts);
    transport.tell(call, invocation.verdicts.filter(isEnforced));
    let delayMs = 0;
    for (const verdict of verdicts) {
      if (!verdict.allowed) {
        return andThen(this.#denialOf(invocation), (denial) => {
          throw denial;
        });
      }
      delayMs = Math.max(delayMs, verdict.delayMs);
    }
    if (verdicts.some(hasCountIf)) this.#awaitEnd(invocation);
    return delayMs > 0 ? transport.hold(call, delayMs).then(() => true) : true;
  }

  #denialOf({ call, transport, verdicts }: Invocation): MaybePromise<Error> {
    const own = this.#parts.denied?.(call, verdicts);
    if (own !== undefined) return own;
    const exception = denialOf(verdicts);
    return (transport.deniesInFilter ? undefined : transport.denial?.(exception, call.args)) ?? exception;
  }

  /** Has `countIf` asked when the call is over. */
  #awaitEnd(invocation: Invocation): void {
    const { call, transport } = invocation;
    if (invocation.awaited || transport.onEnd === undefined) return;
    invocation.awaited = true;
    transport.onEnd(call, (statusCode) => this.#refundUncounted(invocation, statusCode));
  }

  #refundUncounted({ verdicts, ended }: Invocation, statusCode: number | undefined): void {
    const { engine, report } = this.#parts;
    refundUncounted(engine, verdicts, statusCode === undefined ? ended : { ...ended, statusCode }, report);
  }
}

/** What `work` gives. Where Nest would not answer a call with what it throws, the transport does, and the call ends here. */
function orAnswered<T>({ call, transport }: Invocation, work: () => MaybePromise<T>): MaybePromise<T> {
  const answer = transport.answerer?.(call.args);
  if (answer === undefined) return work();
  return orElse(work, (thrown) => answer(thrown).then(never));
}

/** Neither the handler may run, nor Nest see an error. A promise for each call: it is collected with who waits for it. */
function never(): Promise<never> {
  return new Promise(() => {});
}
