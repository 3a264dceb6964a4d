/**
 * What the script and this side of it have agreed on: the numbers of a batch's argument, and of its reply. All that
 * travels is doubles. The script's source takes these constants over, so that none is written twice.
 */

/** What is asked for, one after another, in a batch. */
export const OPERATION = {
  /** count, then for each charge: key, quota, cost, blockMs, shadow. Replies the charges' serial first. */
  decide: 1,
  /** key, quota */
  peek: 2,
  /** key, quota, announce, cost, limit, windowMs, chargedAt, mark, serial */
  refund: 3,
  /** key, quota, announce, cost */
  giveBack: 4,
  /** key, announce */
  reset: 5,
  /** key, announce, durationMs */
  block: 6,
  /** key, announce */
  unblock: 7,
  /** key, quota, most, cost */
  settle: 8,
} as const;

/** The first number of each operation's reply. */
export const RESULT = {
  /** All charges of the group that were admitted were taken; another operation was done. */
  done: 1,
  /** One denied, so none was taken. */
  denied: 0,
  /** The key at the index that follows holds something else: nothing was done. */
  broken: 2,
} as const;

/** The second number of a reply; the first is the server's time. */
export const BATCH = {
  done: 1,
  /** The not-after time had passed: nothing was done. */
  late: 0,
} as const;

/** In place of a not-after time, or of an explicit clock's. */
export const NONE = -1;

/** How much longer Redis keeps a counter whose time is an explicit clock's: that clock may stand still. */
export const HELD_CLOCK_GRACE_MS = 3_600_000;
