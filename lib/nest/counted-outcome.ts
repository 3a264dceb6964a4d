import { DecidedVerdict } from '../core/decided-verdict.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { messageOf } from '../core/errors.js';
import type { LimiterEngine } from '../core/limiter-engine.js';
import type { CallOutcome, Policy } from '../core/policy.js';
import { isPromiseLike } from '../core/maybe-promise.js';
import type { Verdict } from '../core/verdict.js';

/** Asks each policy's `countIf` how the call ended, and gives back what it does not count. */
export function refundUncounted(
  engine: LimiterEngine,
  verdicts: readonly Verdict[],
  outcome: CallOutcome,
  report: DiagnosticSink,
): void {
  const uncounted = verdicts.filter((verdict) => {
    const policy = DecidedVerdict.counterOf(verdict)?.policy;
    return policy?.countIf !== undefined && !counts(policy, policy.countIf, outcome, report);
  });
  // The call is over: what the store can't give back now stays counted.
  void engine.refundAll(uncounted);
}

/** Runs a call whose end is the end of its promise, and counts it by that. */
export async function countOutcome(
  engine: LimiterEngine,
  verdicts: readonly Verdict[],
  report: DiagnosticSink,
  proceed: () => unknown,
): Promise<unknown> {
  try {
    const result = await proceed();
    refundUncounted(engine, verdicts, { result }, report);
    return result;
  } catch (error) {
    refundUncounted(engine, verdicts, { error }, report);
    throw error;
  }
}

function counts(
  policy: Policy,
  countIf: NonNullable<Policy['countIf']>,
  outcome: CallOutcome,
  report: DiagnosticSink,
): boolean {
  try {
    const counted: unknown = countIf(outcome);
    if (isPromiseLike(counted)) {
      void counted.then(undefined, () => {});
      throw new TypeError('it gave a promise, and has to answer at once');
    }
    return Boolean(counted);
  } catch (error) {
    report({
      code: 'RL_COUNT_IF_FAILED',
      message: `countIf of policy '${policy.name}' threw: ${messageOf(error)}`,
    });
    return true;
  }
}
