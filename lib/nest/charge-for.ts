import type { CallContext } from '../core/call-context.js';
import { requireCost, type ChargeRequest } from '../core/charge-request.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { andThen, type MaybePromise } from '../core/maybe-promise.js';
import { boundSubject } from '../core/subject.js';
import { subjectFor } from './call-subject.js';
import { keyOf, type PlannedPolicy } from './handler-plan.js';

/** A policy that this call skips, or one whose subject is not known yet. */
export type NoCharge = 'skipped' | 'deferred';

/**
 * What one policy charges for a call.
 *
 * @param canDefer whether a subject that is not known yet may be asked for again later; otherwise the client's
 * address takes its place
 */
export function chargeFor(
  planned: PlannedPolicy,
  call: CallContext,
  canDefer: boolean,
  report: DiagnosticSink,
): MaybePromise<ChargeRequest | NoCharge> {
  const policy = planned.slot.current;
  if (policy.skip === undefined && planned.skip === undefined) return charge(planned, call, canDefer, report);
  return andThen(policy.skip?.(call), (skipped) =>
    andThen(skipped === true || planned.skip?.(call), (skippedHere) =>
      skippedHere === true ? 'skipped' : charge(planned, call, canDefer, report),
    ),
  );
}

function charge(
  planned: PlannedPolicy,
  call: CallContext,
  canDefer: boolean,
  report: DiagnosticSink,
): MaybePromise<ChargeRequest | NoCharge> {
  const { slot } = planned;
  return andThen(subjectFor(keyOf(planned), call, canDefer, slot.name, report), (subject) => {
    if (subject === undefined) return 'deferred';
    const cost = planned.cost ?? slot.current.cost;
    const bounded = boundSubject(subject);
    if (typeof cost === 'number') return { slot, subject: bounded, cost };
    return andThen(cost(call), (units) => ({ slot, subject: bounded, cost: requireCost(slot.name, units) }));
  });
}
