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
  type RegisterAlgorithm,
} from '../core/algorithm.js';

const START = 0;
const WINDOW = 1;
const PREVIOUS = 2;
const CURRENT = 3;

/**
 * Sliding window counter: the running window's count, plus the previous one's weighted by how much of it a
 * sliding window would still cover. Two numbers a subject, a smooth edge.
 * Per aligned window at most `limit` pass; in any span of one window at most `2 × limit`.
 *
 * Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains" (2017).
 * Here the weights stay whole numbers: everything is compared in units of 1/window. When the window's length
 * changes, the estimate of the moment is carried over as the new window's count.
 */
export const slidingWindowCounter: RegisterAlgorithm = {
  name: 'sliding-window-counter',
  shape: 'registers',
  registers: ['start', 'window', 'previous', 'current'],
  uses: [],
  defaultBurst: (limit) => limit,
  capacity: ({ limit }) => limit,
  idleMs: ({ windowMs }) => 2 * windowMs,

  step(r, o, { limit, windowMs: window }, now, cost, out) {
    let start = r[o + START]!;
    let previous = r[o + PREVIOUS]!;
    let current = r[o + CURRENT]!;
    const stored = r[o + WINDOW]!;
    const ahead = start > now + MAX_CLOCK_LEAD_MS;
    const t = Math.max(ahead ? 0 : start, now);

    if (ahead) {
      start = Math.floor(t / stored) * stored;
    } else if (t >= start + 2 * stored) {
      previous = 0;
      current = 0;
      start = Math.floor(t / window) * window;
    } else if (t >= start + stored) {
      previous = current;
      current = 0;
      start += stored;
    }
    const resized = stored !== window && stored !== 0;
    if (resized) {
      current += Math.ceil((previous * Math.max(0, start + stored - t)) / stored);
      previous = 0;
      start = Math.floor(t / window) * window;
    }

    const used = previous * (window - (t - start)) + current * window;
    const allowed = used + cost * window <= limit * window;
    if (allowed) current += cost;
    // A denial keeps what it carried: it would be carried again and again, and never be lifted.
    if (cost > 0 && (allowed || ahead || resized)) {
      r[o + START] = start;
      r[o + WINDOW] = window;
      r[o + PREVIOUS] = previous;
      r[o + CURRENT] = current;
    }
    const left = limit * window - used - (allowed ? cost * window : 0);
    out[ALLOWED] = allowed ? 1 : 0;
    out[REMAINING] = Math.floor(Math.max(0, left) / window);
    if (allowed) {
      out[RETRY_AFTER] = 0;
    } else if (cost > limit) {
      out[RETRY_AFTER] = NEVER;
    } else if (current + cost <= limit) {
      out[RETRY_AFTER] = start + window - Math.floor(((limit - current - cost) * window) / previous) - now;
    } else {
      out[RETRY_AFTER] = start + 2 * window - Math.floor(((limit - cost) * window) / current) - now;
    }
    out[RESET_AFTER] = current > 0 ? start + 2 * window - now : previous > 0 ? start + window - now : 0;
    out[DELAY] = 0;
    out[CHARGED_AT] = t;
    out[MARK] = start;
  },

  refund(r, o, _quota, now, cost, receipt) {
    const start = r[o + START]!;
    const stored = r[o + WINDOW]!;
    if (receipt === null) {
      if (now < start + stored) r[o + CURRENT] = Math.max(0, r[o + CURRENT]! - cost);
    } else if (receipt.windowMs === stored) {
      if (receipt.mark === start) r[o + CURRENT] = Math.max(0, r[o + CURRENT]! - cost);
      else if (receipt.mark === start - stored) r[o + PREVIOUS] = Math.max(0, r[o + PREVIOUS]! - cost);
    }
  },

  lua: `
local START, WINDOW, PREVIOUS, CURRENT = 1, 2, 3, 4

local function step(r, quota, now, cost)
  local limit, window = quota.limit, quota.windowMs
  local start, previous, current = r[START], r[PREVIOUS], r[CURRENT]
  local stored = r[WINDOW]
  local ahead = start > now + MAX_CLOCK_LEAD_MS
  local t = max(ahead and 0 or start, now)

  if ahead then
    start = floor(t / stored) * stored
  elseif t >= start + 2 * stored then
    previous = 0
    current = 0
    start = floor(t / window) * window
  elseif t >= start + stored then
    previous = current
    current = 0
    start = start + stored
  end
  local resized = stored ~= window and stored ~= 0
  if resized then
    current = current + ceil((previous * max(0, start + stored - t)) / stored)
    previous = 0
    start = floor(t / window) * window
  end

  local used = previous * (window - (t - start)) + current * window
  local allowed = used + cost * window <= limit * window
  if allowed then current = current + cost end
  if cost > 0 and (allowed or ahead or resized) then
    r[START] = start
    r[WINDOW] = window
    r[PREVIOUS] = previous
    r[CURRENT] = current
  end
  local left = limit * window - used - (allowed and cost * window or 0)
  local retryAfter
  if allowed then
    retryAfter = 0
  elseif cost > limit then
    retryAfter = NEVER
  elseif current + cost <= limit then
    retryAfter = start + window - floor(((limit - current - cost) * window) / previous) - now
  else
    retryAfter = start + 2 * window - floor(((limit - cost) * window) / current) - now
  end
  return allowed,
    floor(max(0, left) / window),
    retryAfter,
    current > 0 and start + 2 * window - now or (previous > 0 and start + window - now or 0),
    0,
    t,
    start
end

local function refund(r, quota, now, cost, receipt)
  local start, stored = r[START], r[WINDOW]
  if receipt == nil then
    if now < start + stored then r[CURRENT] = max(0, r[CURRENT] - cost) end
  elseif receipt.windowMs == stored then
    if receipt.mark == start then
      r[CURRENT] = max(0, r[CURRENT] - cost)
    elseif receipt.mark == start - stored then
      r[PREVIOUS] = max(0, r[PREVIOUS] - cost)
    end
  end
end

return step, refund`,
};
