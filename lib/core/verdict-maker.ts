import type { CallContext } from './call-context.js';
import type { ChargeRequest } from './charge-request.js';
import { DecidedVerdict } from './decided-verdict.js';
import type { Charge, Decision } from './driver.js';
import { RateLimitConfigError } from './errors.js';
import { andThen, orElse, type MaybePromise } from './maybe-promise.js';
import type { ObserverHub } from './observer.js';
import { decisionsWithoutStore } from './unavailable.js';
import type { Verdict } from './verdict.js';

/** What is to be decided together, and the call that brought it, where one did. */
interface Question {
  readonly requests: readonly ChargeRequest[];
  /** One for each request. */
  readonly charges: readonly Charge[];
  readonly call?: CallContext | undefined;
}

/** Makes verdicts of decisions, or of what the policies say where the store can't decide, and tells observers. */
export class VerdictMaker {
  readonly #observers: ObserverHub;

  constructor(observers: ObserverHub) {
    this.#observers = observers;
  }

  ask(question: Question, decide: () => MaybePromise<readonly Decision[]>): MaybePromise<readonly Verdict[]> {
    const { requests, charges, call } = question;
    const startedAt = this.#startedAt();
    return orElse<readonly Verdict[]>(
      () =>
        andThen(decide(), (decisions) => {
          const durationMs = since(startedAt);
          return decisions.map((decision, i) =>
            this.#verdict(requests[i]!, charges[i]!, decision, durationMs, call),
          );
        }),
      (error) => this.#withoutStore(question, error, startedAt),
    );
  }

  askNow(request: ChargeRequest, charge: Charge, decide: () => Decision): Verdict {
    const startedAt = this.#startedAt();
    try {
      return this.#verdict(request, charge, decide(), since(startedAt));
    } catch (error) {
      return this.#withoutStore({ requests: [request], charges: [charge] }, error, startedAt)[0]!;
    }
  }

  /** @throws the error where a policy wants that, and where the input was wrong */
  #withoutStore(
    { requests, charges, call }: Question,
    error: unknown,
    startedAt: number | undefined,
  ): readonly Verdict[] {
    if (error instanceof RateLimitConfigError) throw error;
    const durationMs = since(startedAt);
    return decisionsWithoutStore(charges, error).map((decision, i) =>
      this.#verdict(requests[i]!, charges[i]!, decision, durationMs, call, true),
    );
  }

  #verdict(
    request: ChargeRequest,
    charge: Charge,
    decision: Decision,
    durationMs: number | undefined,
    call?: CallContext,
    storeFailed = false,
  ): Verdict {
    const verdict = new DecidedVerdict(charge, request.subject, decision, storeFailed);
    if (this.#observers.listensToDecisions) {
      const { policy, quota, cost } = charge;
      this.#observers.emit('decision', {
        verdict,
        policy,
        quota,
        cost,
        outcome: decision.allowed ? 'allowed' : verdict.allowed ? 'shadow-denied' : 'denied',
        storeFailed: DecidedVerdict.storeFailed(verdict),
        call,
        durationMs,
      });
    }
    return verdict;
  }

  /** Nothing is timed that nobody wants to know. */
  #startedAt(): number | undefined {
    return this.#observers.timesDecisions ? performance.now() : undefined;
  }
}

function since(startedAt: number | undefined): number | undefined {
  return startedAt === undefined ? undefined : performance.now() - startedAt;
}
