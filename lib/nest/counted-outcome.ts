import { DecidedVerdict } from '../core/decided-verdict.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import type { CallOutcome, Policy } from '../core/policy.js';
import type { RateLimiter } from '../core/rate-limiter.js';
import type { Verdict } from '../core/verdict.js';

/** Asks each policy's `countIf` how the call ended, and gives back what it does not count. */
export function refundUncounted(
  limiter: RateLimiter,
  verdicts: readonly Verdict[],
  outcome: CallOutcome,
  report: DiagnosticSink,
): void {
  for (const verdict of verdicts) {
    const policy = DecidedVerdict.counterOf(verdict)?.policy;
    if (policy?.countIf === undefined || counts(policy, policy.countIf, outcome, report)) continue;
    // The call is over: what the store can't give back now stays counted.
    void Promise.resolve(limiter.refundVerdict(verdict)).catch(() => {});
  }
}

/** Runs a call whose end is the end of its promise, and counts it by that. */
export async function countOutcome(
  limiter: RateLimiter,
  verdicts: readonly Verdict[],
  report: DiagnosticSink,
  proceed: () => unknown,
): Promise<unknown> {
  try {
    const result = await proceed();
    refundUncounted(limiter, verdicts, { result }, report);
    return result;
  } catch (error) {
    refundUncounted(limiter, verdicts, { error }, report);
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
    return countIf(outcome);
  } catch (error) {
    report({
      code: 'RL_COUNT_IF_FAILED',
      message: `countIf of policy '${policy.name}' threw: ${String(error)}`,
    });
    return true;
  }
}
