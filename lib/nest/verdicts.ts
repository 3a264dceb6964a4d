import { DecidedVerdict } from '../core/decided-verdict.js';
import type { Verdict } from '../core/verdict.js';

/** The window behind a verdict, in milliseconds. */
export function windowMsOf(verdict: Verdict): number {
  return DecidedVerdict.counterOf(verdict)?.quota.windowMs ?? verdict.resetAfterMs;
}

/** Whether the verdict is told to callers: what a policy in shadow mode says is for observers. */
export function isEnforced(verdict: Verdict): boolean {
  return DecidedVerdict.counterOf(verdict)?.policy.mode !== 'shadow';
}

/** Whether its policy asks how the call ended. */
export function hasCountIf(verdict: Verdict): boolean {
  return DecidedVerdict.counterOf(verdict)?.policy.countIf !== undefined;
}
