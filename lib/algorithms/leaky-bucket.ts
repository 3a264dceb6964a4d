import { drainingBucket, undrained } from './draining-bucket.js';

/**
 * Leaky bucket as a queue, a traffic shaper: a call is told how long to wait (`delayMs`), so that departures are
 * evenly spaced, `limit` per window. Of calls of cost 1, at most `limit + 1` leave in any span of one window (while
 * `limit` is at most one a millisecond). A call that finds no room in the bucket (`burst`, what leaves now
 * included), or that would be held longer than `maxDelay`, is denied.
 *
 * Source: J. Turner, "New directions in communications" (1986); ITU-T I.371.
 */
export const leakyBucket = drainingBucket({
  name: 'leaky-bucket',
  uses: ['burst', 'maxDelay'],
  shapes: true,
  defaultBurst: (limit, windowMs) =>
    limit === 0 ? 0 : Math.max(1, Math.min(limit, Math.floor((limit * 1000) / windowMs))),
  // Only the last place can be given back: another one's successors already know when they leave.
  // Under another quota levels don't compare.
  refundable: (receipt, quota, used, t) =>
    receipt.limit === quota.limit &&
    receipt.windowMs === quota.windowMs &&
    used === receipt.mark - (t - receipt.chargedAt) * receipt.limit
      ? undrained(receipt, quota, t)
      : 0,
  refundableLua: `
  return (receipt.limit == quota.limit
    and receipt.windowMs == quota.windowMs
    and used == receipt.mark - (t - receipt.chargedAt) * receipt.limit)
    and undrained(receipt, quota, t) or 0`,
});
