import {
  ALLOWED,
  CHARGED_AT,
  DELAY,
  MARK,
  MAX_CLOCK_LEAD_MS,
  NEVER,
  REMAINING,
  RESET_AFTER,
  RETRY_AFTER,
  type Quota,
  type Receipt,
  type RegisterAlgorithm,
} from '../core/algorithm.js';

/**
 * `used` counts in units of 1/window, so that draining stays in whole numbers: one request weighs `window`, one
 * millisecond drains `limit`.
 */
const USED = 0;
const WINDOW = 1;
const AT = 2;

/**
 * The arithmetic that token bucket, GCRA and leaky bucket share: a level that each request raises and time
 * lowers. They differ in whether the level makes a call wait, and in what can be given back.
 */
export function drainingBucket(traits: {
  readonly name: string;
  readonly uses: RegisterAlgorithm['uses'];
  /** True: a call is held until everything before it has drained. */
  readonly shapes: boolean;
  readonly defaultBurst: (limit: number, windowMs: number) => number;
  /** The part of `receipt`, in units of its own window, that can be given back at time `t` by today's quota. `untouched`: nothing has
   * been charged or given back since. */
  readonly refundable: (
    receipt: Receipt,
    quota: Quota,
    used: number,
    t: number,
    untouched: boolean,
  ) => number;
}): RegisterAlgorithm {
  const { name, uses, shapes, defaultBurst, refundable } = traits;
  return {
    name,
    shape: 'registers',
    registers: ['used', 'window', 'at'],
    uses,
    defaultBurst,
    capacity: ({ limit, burst }) => (limit === 0 ? 0 : burst),
    idleMs: ({ limit, burst, windowMs }) => (limit === 0 ? windowMs : Math.ceil((burst * windowMs) / limit)),

    step(r, o, { limit, burst, windowMs: window, maxDelayMs }, now, cost, out) {
      const capacity = limit === 0 ? 0 : burst * window;
      const ahead = r[o + AT]! > now + MAX_CLOCK_LEAD_MS;
      const at = Math.max(ahead ? 0 : r[o + AT]!, now);
      const elapsed = ahead ? 0 : at - r[o + AT]!;
      let used = r[o + USED]!;
      const counted = r[o + WINDOW]!;
      if (counted !== window && counted !== 0) used = Math.ceil((used * window) / counted);
      used = Math.max(0, used - elapsed * limit);

      const delay = shapes && used > 0 ? at - now + Math.ceil(used / limit) : 0;
      const after = used + cost * window;
      const allowed = after <= capacity && delay <= maxDelayMs;
      if (allowed) {
        used = after;
        if (cost > 0) {
          r[o + USED] = used;
          r[o + WINDOW] = window;
          r[o + AT] = at;
        }
      } else if (ahead && cost > 0) {
        r[o + AT] = at;
      }
      out[ALLOWED] = allowed ? 1 : 0;
      out[REMAINING] = Math.floor(Math.max(0, capacity - used) / window);
      if (allowed) {
        out[RETRY_AFTER] = 0;
      } else if (cost > burst || limit === 0) {
        out[RETRY_AFTER] = NEVER;
      } else {
        const room = after > capacity ? at - now + Math.ceil((after - capacity) / limit) : 0;
        out[RETRY_AFTER] = Math.max(room, delay - maxDelayMs);
      }
      out[RESET_AFTER] = limit === 0 || used === 0 ? 0 : at - now + Math.ceil(used / limit);
      out[DELAY] = allowed ? delay : 0;
      out[CHARGED_AT] = at;
      out[MARK] = used;
    },

    refund(r, o, quota, now, cost, receipt) {
      const { limit, windowMs: window } = quota;
      const counted = r[o + WINDOW]!;
      if (counted === 0) return;
      const stored = r[o + AT]!;
      const t = Math.max(stored, now);
      let used = r[o + USED]!;
      const untouched = receipt !== null && stored === receipt.chargedAt && used === receipt.mark;
      if (counted !== window) used = Math.ceil((used * window) / counted);
      used = Math.max(0, used - (t - stored) * limit);
      const back =
        receipt === null
          ? cost * window
          : Math.floor((refundable(receipt, quota, used, t, untouched) * window) / receipt.windowMs);
      r[o + USED] = Math.max(0, used - back);
      r[o + WINDOW] = window;
      r[o + AT] = t;
    },
  };
}

/**
 * What is left of a charge after all that has drained since, in units of its own window, at the faster of the rates then
 * and now. What drained may have been somebody else's, so this can be less than the charge still weighs; it is never
 * more, however many charges are given back in whatever order.
 */
export function lessDrained(receipt: Receipt, quota: Quota, t: number): number {
  const { cost, windowMs, chargedAt } = receipt;
  return Math.max(0, cost * windowMs - drainedSince(receipt, quota, t - chargedAt));
}

/**
 * What of the last charge has not drained by time `t`, first in, first out: exactly what it still adds to the level. Only
 * where nothing was charged after it.
 */
export function undrained(receipt: Receipt, quota: Quota, t: number): number {
  const { cost, windowMs, chargedAt, mark } = receipt;
  const own = cost * windowMs;
  const drained = drainedSince(receipt, quota, t - chargedAt) - (mark - own);
  return own - Math.min(Math.max(drained, 0), own);
}

function drainedSince({ limit, windowMs }: Receipt, quota: Quota, elapsedMs: number): number {
  return Math.ceil(elapsedMs * Math.max(limit, (quota.limit * windowMs) / quota.windowMs));
}
