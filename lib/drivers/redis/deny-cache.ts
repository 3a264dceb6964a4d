import {
  ALLOWED,
  OUTCOME_SLOTS,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Quota,
} from '../../core/algorithm.js';
import { blockedFor } from '../../core/blocked-decision.js';
import type { Charge, Decision } from '../../core/driver.js';
import type { Policy } from '../../core/policy.js';
import type { DenialState, Sent } from './operations.js';

/** No denial is remembered longer, whatever happened elsewhere. */
const LIFE_MS = 1_000;
/** The most that is remembered; then the oldest is forgotten. */
const MAX_ENTRIES = 10_000;

interface Denied {
  readonly policy: Policy;
  readonly quota: Quota;
  readonly cost: number;
  readonly decision: Decision;
  readonly state: DenialState;
  readonly sentAt: number;
}

/**
 * Denials that are still good, by the counter's key. A denial comes with the state it was read from; while nobody gives
 * anything back that state only drains, so the same arithmetic tells here what Redis would answer: exactly, for any
 * cost, and to the millisecond that Redis would admit it again. Then, and whenever in doubt, Redis is asked.
 */
export class DenyCache {
  readonly #entries = new Map<string, Denied>();
  /** Keys that were changed, and the first command whose denials may be trusted again. */
  readonly #changes = new Map<string, number>();
  readonly #out = new Float64Array(OUTCOME_SLOTS);
  #scratch = new Float64Array(8);
  /** Off while nobody would tell us of changes. */
  #listening = false;

  get size(): number {
    return this.#entries.size;
  }

  /** Whether changes elsewhere are heard of: without that nothing is remembered. */
  set listening(listening: boolean) {
    this.#listening = listening;
    if (!listening) this.#entries.clear();
  }

  /** Whether denials under this policy are remembered: with `countIf` nearly every call is given back some time. */
  static suits(policy: Policy): boolean {
    return policy.countIf === undefined;
  }

  /** The denial of this charge, if it is certain. `now` as in {@link Sent.at}. */
  find(key: string, charge: Charge, now: number): Decision | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const elapsed = Math.max(0, Math.ceil(now - entry.sentAt));
    const decision =
      elapsed < LIFE_MS && isSame(entry, charge) ? this.#decide(entry, charge.cost, elapsed) : undefined;
    if (decision === undefined) this.#entries.delete(key);
    return decision;
  }

  remember(key: string, charge: Charge, decision: Decision, state: DenialState, sent: Sent): void {
    if (!this.#listening || !DenyCache.suits(charge.policy) || (this.#changes.get(key) ?? 0) > sent.number)
      return;
    this.#entries.delete(key);
    this.#entries.set(key, { ...charge, decision, state, sentAt: sent.at });
    if (this.#entries.size > MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value!);
  }

  /**
   * Forgets a key that is being, or was, changed. Denials of commands before `trustedFrom` may be older than the change.
   */
  forget(key: string, trustedFrom: number): void {
    this.#entries.delete(key);
    if (!this.#listening) return;
    this.#changes.delete(key);
    this.#changes.set(key, trustedFrom);
    if (this.#changes.size > MAX_ENTRIES) this.#changes.delete(this.#changes.keys().next().value!);
  }

  #decide(entry: Denied, cost: number, elapsed: number): Decision | undefined {
    const { state, decision, quota } = entry;
    const blockedMs = state.blockedMs - elapsed;
    // A denial that would start a block has to start it.
    if (state.blockedMs > 0 && blockedMs <= 0) return undefined;
    const outcome =
      state.registers === undefined
        ? agedDenial(decision, cost === entry.cost, elapsed)
        : this.#step(entry, state.registers, state.now + elapsed, quota, cost);
    if (outcome === undefined || (outcome.allowed && blockedMs <= 0)) return undefined;
    if (blockedMs <= 0) return outcome;
    // Only the block keeps it out: the quota is back as if nothing had been taken.
    const untaken = outcome.allowed ? this.#measure(entry, elapsed) : outcome;
    return untaken && blockedFor(untaken, blockedMs);
  }

  #measure(entry: Denied, elapsed: number): Decision | undefined {
    const { state, quota } = entry;
    return state.registers && this.#step(entry, state.registers, state.now + elapsed, quota, 0);
  }

  #step(
    { policy }: Denied,
    registers: Float64Array,
    now: number,
    quota: Quota,
    cost: number,
  ): Decision | undefined {
    const { arithmetic } = policy;
    if (arithmetic.shape !== 'registers') return undefined;
    if (this.#scratch.length < registers.length) this.#scratch = new Float64Array(registers.length);
    this.#scratch.set(registers);
    const out = this.#out;
    arithmetic.step(this.#scratch, 0, quota, now, cost, out);
    return {
      allowed: out[ALLOWED] === 1,
      remaining: out[REMAINING]!,
      retryAfterMs: out[RETRY_AFTER]!,
      resetAfterMs: out[RESET_AFTER]!,
      delayMs: 0,
      servedBy: 'deny-cache',
      receipt: undefined,
    };
  }
}

/** The denial of a log, whose entries are not here: the same cost waits for the same entry to go. */
function agedDenial(decision: Decision, sameCost: boolean, elapsed: number): Decision | undefined {
  const retryAfterMs = decision.retryAfterMs - elapsed;
  if (!sameCost || retryAfterMs <= 0) return undefined;
  const resetAfterMs = Math.max(0, decision.resetAfterMs - elapsed);
  return { ...decision, retryAfterMs, resetAfterMs, servedBy: 'deny-cache' };
}

function isSame({ policy, quota }: Denied, charge: Charge): boolean {
  return policy === charge.policy && (quota === charge.quota || isEqual(quota, charge.quota));
}

/** A resolver may make a new object for each call. */
function isEqual(a: Quota, b: Quota): boolean {
  return (
    a.limit === b.limit && a.windowMs === b.windowMs && a.burst === b.burst && a.maxDelayMs === b.maxDelayMs
  );
}
