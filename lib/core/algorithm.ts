/**
 * The arithmetic of one algorithm, and nothing else. A driver owns all input and output: keys, loading,
 * saving, expiry, time and batching. That is why any algorithm runs on any driver with the same decisions.
 *
 * The contract of `step` and `refund`, which a twin in another language (a Redis script) has to keep as well:
 *
 * - State is a fixed tuple of IEEE doubles. **All zero means "never seen"**; there is no other first-call case.
 * - Everything stored is a whole number, so no rounding error can lift a denial early or late. Quantities that
 *   would be fractions are counted in units of 1/window and stored beside the window they were counted in.
 * - `now` is whole milliseconds. It may run backwards: a stored time never does (`t = max(now, stored)`). A stored
 *   time more than {@link MAX_CLOCK_LEAD_MS} ahead is set back to `now`, and what was used is kept.
 * - A denial takes nothing. It writes only where the stored time was set back or the window has another length than
 *   the stored one, and then what was used, put in today's terms: a driver stores that, or the subject stays locked.
 * - A cost of 0 measures, and writes no register: it is how a driver looks without charging.
 */
export type Algorithm = RegisterAlgorithm | LogAlgorithm;

/** What a policy, or a resolver's answer, gives an algorithm to count by. */
export interface Quota {
  /** Whole requests a window, ≥ 0; 0 admits nothing. */
  readonly limit: number;
  readonly windowMs: number;
  /** The most that may be taken at once. Algorithms without a burst ignore it. */
  readonly burst: number;
  /** Leaky bucket: a call that would be held longer is denied. `Infinity` where there is no such bound. */
  readonly maxDelayMs: number;
}

/** What a charge left behind, so that exactly that charge can be given back. */
export interface Receipt {
  readonly cost: number;
  /** The quota it was counted by, which may have changed since. */
  readonly limit: number;
  readonly windowMs: number;
  /** The time the charge was counted at, in the store's milliseconds. */
  readonly chargedAt: number;
  /** What the algorithm wrote to {@link MARK}. */
  readonly mark: number;
  /** The driver's own: orders a store's charges, so that what a reset has forgotten is not given back. */
  readonly serial?: number;
}

interface AlgorithmBase {
  /** A stable name: it is part of every storage key. */
  readonly name: string;
  /** Which of the two optional numbers of a quota mean something here. */
  readonly uses: readonly ('burst' | 'maxDelay')[];
  /** The burst of a policy that names none. Whole, ≥ 1 unless `limit` is 0. */
  defaultBurst(limit: number, windowMs: number): number;
  /** The largest cost that can ever be admitted; a larger one is denied for ever. */
  capacity(quota: Quota): number;
  /** After this many milliseconds without a call the state equals zero. It is the key's time to live. ≥ 1. */
  idleMs(quota: Quota): number;
  /**
   * The twin of `step` and `refund` for Redis: the body of a Lua function that returns both. The same operations in the
   * same order, and never a number made into text (`..`, `tostring`): both languages compute in IEEE doubles, and so
   * come to the same state, to the bit. An algorithm without it runs in memory only.
   *
   * - `step(r, quota, now, cost)` returns allowed, remaining, retryAfterMs, resetAfterMs, delayMs, chargedAt, mark.
   * - `refund(r, quota, now, cost, receipt)`, where `receipt` may be nil.
   * - `r` holds the registers from 1 on. A log is a table with `size` and `total`, and the methods of {@link EntryLog},
   *   its entries counted from 0 on: `r:time(0)`.
   * - `quota` and `receipt` have the fields of {@link Quota} and {@link Receipt}.
   * - In scope are `floor`, `ceil`, `max`, `min`, `NEVER` and `MAX_CLOCK_LEAD_MS`. There is nothing else to call.
   */
  readonly lua?: string;
}

/** An algorithm whose state is a few numbers. */
export interface RegisterAlgorithm extends AlgorithmBase {
  readonly shape: 'registers';
  /** The names of the state's numbers, in order. An operator sees them in the store. */
  readonly registers: readonly string[];
  /**
   * Decides one charge, and takes it if it is allowed.
   *
   * @param r    holds the state at `r[o] … r[o + registers.length - 1]`
   * @param cost whole units ≥ 0; 0 takes nothing and reports what is left
   * @param out  receives the outcome at {@link ALLOWED} … {@link MARK}
   */
  step(r: Float64Array, o: number, quota: Quota, now: number, cost: number, out: Float64Array): void;
  /**
   * Gives back what `receipt` took, as far as it still counts; without one, `cost` of the current window.
   * Never leaves less than nothing used.
   */
  refund(r: Float64Array, o: number, quota: Quota, now: number, cost: number, receipt: Receipt | null): void;
}

/** An algorithm that remembers each charge. */
export interface LogAlgorithm extends AlgorithmBase {
  readonly shape: 'log';
  /** As {@link RegisterAlgorithm.step}, on a log. It may drop entries that no longer count, whatever it decides. */
  step(log: EntryLog, quota: Quota, now: number, cost: number, out: Float64Array): void;
  /** As {@link RegisterAlgorithm.refund}, on a log. */
  refund(log: EntryLog, quota: Quota, now: number, cost: number, receipt: Receipt | null): void;
}

/** A queue of (time, cost), oldest first. The five verbs are what a driver has to provide for a log. */
export interface EntryLog {
  readonly size: number;
  /** The sum of all costs. */
  readonly total: number;
  time(index: number): number;
  cost(index: number): number;
  push(time: number, cost: number): void;
  dropOldest(count: number): void;
  amend(index: number, time: number, cost: number): void;
}

/** Slots of an outcome. */
export const ALLOWED = 0;
/** Whole units left, after the charge if it was taken. */
export const REMAINING = 1;
/** Milliseconds until the same charge would be allowed: 0 when it was, {@link NEVER} when it can't be. */
export const RETRY_AFTER = 2;
/** Milliseconds until the whole quota is back. */
export const RESET_AFTER = 3;
/** Milliseconds to hold the call before it goes. */
export const DELAY = 4;
/** The time the charge was counted at: `now`, or the stored time where that is later. */
export const CHARGED_AT = 5;
/** One number of the algorithm's own that finds the charge again on a refund. */
export const MARK = 6;
export const OUTCOME_SLOTS = 7;

/** The wait of a charge that can never be admitted. */
export const NEVER = Infinity;

/** How far a stored time may be ahead of the clock before it is taken for a clock that jumped. */
export const MAX_CLOCK_LEAD_MS = 60_000;
