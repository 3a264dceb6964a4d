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
  /** The twin of `refundable`: the body of a Lua function of the same arguments. */
  readonly refundableLua: string;
}): RegisterAlgorithm {
  const { name, uses, shapes, defaultBurst, refundable, refundableLua } = traits;
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

    lua: `
local USED, WINDOW, AT = 1, 2, 3
local shapes = ${shapes}

local function step(r, quota, now, cost)
  local limit, burst, window, maxDelayMs = quota.limit, quota.burst, quota.windowMs, quota.maxDelayMs
  local capacity = limit == 0 and 0 or burst * window
  local ahead = r[AT] > now + MAX_CLOCK_LEAD_MS
  local at = max(ahead and 0 or r[AT], now)
  local elapsed = ahead and 0 or at - r[AT]
  local used = r[USED]
  local counted = r[WINDOW]
  if counted ~= window and counted ~= 0 then used = ceil((used * window) / counted) end
  used = max(0, used - elapsed * limit)

  local delay = (shapes and used > 0) and at - now + ceil(used / limit) or 0
  local after = used + cost * window
  local allowed = after <= capacity and delay <= maxDelayMs
  if allowed then
    used = after
    if cost > 0 then
      r[USED] = used
      r[WINDOW] = window
      r[AT] = at
    end
  elseif ahead and cost > 0 then
    r[AT] = at
  end
  local retryAfter
  if allowed then
    retryAfter = 0
  elseif cost > burst or limit == 0 then
    retryAfter = NEVER
  else
    local room = after > capacity and at - now + ceil((after - capacity) / limit) or 0
    retryAfter = max(room, delay - maxDelayMs)
  end
  return allowed,
    floor(max(0, capacity - used) / window),
    retryAfter,
    (limit == 0 or used == 0) and 0 or at - now + ceil(used / limit),
    allowed and delay or 0,
    at,
    used
end

local function drainedSince(receipt, quota, elapsedMs)
  return ceil(elapsedMs * max(receipt.limit, (quota.limit * receipt.windowMs) / quota.windowMs))
end

local function lessDrained(receipt, quota, t)
  return max(0, receipt.cost * receipt.windowMs - drainedSince(receipt, quota, t - receipt.chargedAt))
end

local function undrained(receipt, quota, t)
  local own = receipt.cost * receipt.windowMs
  local drained = drainedSince(receipt, quota, t - receipt.chargedAt) - (receipt.mark - own)
  return own - min(max(drained, 0), own)
end

local function refundable(receipt, quota, used, t, untouched)
  ${refundableLua}
end

local function refund(r, quota, now, cost, receipt)
  local limit, window = quota.limit, quota.windowMs
  local counted = r[WINDOW]
  if counted == 0 then return end
  local stored = r[AT]
  local t = max(stored, now)
  local used = r[USED]
  local untouched = receipt ~= nil and stored == receipt.chargedAt and used == receipt.mark
  if counted ~= window then used = ceil((used * window) / counted) end
  used = max(0, used - (t - stored) * limit)
  local back
  if receipt == nil then
    back = cost * window
  else
    back = floor((refundable(receipt, quota, used, t, untouched) * window) / receipt.windowMs)
  end
  r[USED] = max(0, used - back)
  r[WINDOW] = window
  r[AT] = t
end

return step, refund`,
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
