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
const USED = 2;

/**
 * Fixed window counter: `limit` per window, windows aligned to the epoch.
 * Per aligned window at most `limit` pass; in any span of one window at most `2 × limit`.
 *
 * The counter that JCSprout describes: a denied call does not count. When the window's length
 * changes, what the running window has used is carried into the new one.
 */
export const fixedWindow: RegisterAlgorithm = {
  name: 'fixed-window',
  shape: 'registers',
  registers: ['start', 'window', 'used'],
  uses: [],
  defaultBurst: (limit) => limit,
  capacity: ({ limit }) => limit,
  idleMs: ({ windowMs }) => windowMs,

  step(r, o, { limit, windowMs: window }, now, cost, out) {
    let start = r[o + START]!;
    let used = r[o + USED]!;
    const ahead = start > now + MAX_CLOCK_LEAD_MS;
    const t = Math.max(ahead ? 0 : start, now);
    const live = ahead || t < start + r[o + WINDOW]!;
    const carried = live && (ahead || r[o + WINDOW] !== window);
    if (!live) used = 0;
    if (!live || carried) start = Math.floor(t / window) * window;

    const after = used + cost;
    const allowed = after <= limit;
    if (allowed) used = after;
    // A denial keeps what it carried: it would be carried again and again, and never be lifted.
    if (cost > 0 && (allowed || carried)) {
      r[o + START] = start;
      r[o + WINDOW] = window;
      r[o + USED] = used;
    }
    out[ALLOWED] = allowed ? 1 : 0;
    out[REMAINING] = Math.max(0, limit - used);
    out[RETRY_AFTER] = allowed ? 0 : cost > limit ? NEVER : start + window - now;
    out[RESET_AFTER] = used === 0 ? 0 : start + window - now;
    out[DELAY] = 0;
    out[CHARGED_AT] = t;
    out[MARK] = start;
  },

  refund(r, o, _quota, now, cost, receipt) {
    const start = r[o + START]!;
    const stored = r[o + WINDOW]!;
    const counted =
      receipt === null ? now < start + stored : receipt.mark === start && receipt.windowMs === stored;
    if (counted) r[o + USED] = Math.max(0, r[o + USED]! - cost);
  },

  lua: `
local START, WINDOW, USED = 1, 2, 3

local function step(r, quota, now, cost)
  local limit, window = quota.limit, quota.windowMs
  local start, used = r[START], r[USED]
  local ahead = start > now + MAX_CLOCK_LEAD_MS
  local t = max(ahead and 0 or start, now)
  local live = ahead or t < start + r[WINDOW]
  local carried = live and (ahead or r[WINDOW] ~= window)
  if not live then used = 0 end
  if not live or carried then start = floor(t / window) * window end

  local after = used + cost
  local allowed = after <= limit
  if allowed then used = after end
  if cost > 0 and (allowed or carried) then
    r[START] = start
    r[WINDOW] = window
    r[USED] = used
  end
  return allowed,
    max(0, limit - used),
    allowed and 0 or (cost > limit and NEVER or start + window - now),
    used == 0 and 0 or start + window - now,
    0,
    t,
    start
end

local function refund(r, quota, now, cost, receipt)
  local start, stored = r[START], r[WINDOW]
  local counted
  if receipt == nil then
    counted = now < start + stored
  else
    counted = receipt.mark == start and receipt.windowMs == stored
  end
  if counted then r[USED] = max(0, r[USED] - cost) end
end

return step, refund`,
};
