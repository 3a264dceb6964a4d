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
  type EntryLog,
  type LogAlgorithm,
} from '../core/algorithm.js';

/**
 * Sliding window log: remembers every charge, so **in any span of one window at most `limit` pass**. The exact
 * algorithm, and the one whose state grows: an entry for each millisecond with a charge, at most `limit` of them.
 *
 * Charges of one millisecond share an entry, so work and memory don't grow with cost.
 */
export const slidingWindowLog: LogAlgorithm = {
  name: 'sliding-window-log',
  shape: 'log',
  uses: [],
  defaultBurst: (limit) => limit,
  capacity: ({ limit }) => limit,
  idleMs: ({ windowMs }) => windowMs,

  step(log, { limit, windowMs: window }, now, cost, out) {
    const newest = log.size === 0 ? 0 : log.time(log.size - 1);
    const ahead = newest > now + MAX_CLOCK_LEAD_MS;
    if (ahead) bringBack(log, now);
    const t = Math.max(ahead ? 0 : newest, now);
    out[CHARGED_AT] = t;
    out[MARK] = t;
    dropExpired(log, window, out);

    const used = log.total;
    const allowed = used + cost <= limit;
    if (allowed && cost > 0) {
      const last = log.size - 1;
      if (last >= 0 && log.time(last) === t) {
        log.amend(last, t, log.cost(last) + cost);
      } else {
        // More entries than units in use: refunds have emptied some.
        if (log.size >= limit) dropEmpty(log);
        log.push(t, cost);
      }
    }
    out[ALLOWED] = allowed ? 1 : 0;
    out[REMAINING] = Math.max(0, limit - log.total);
    writeWaits(log, limit, window, now, cost, out);
    out[DELAY] = 0;
  },

  refund(log, { windowMs: window }, now, cost, receipt) {
    const oldest = now - window;
    for (let i = log.size - 1, due = cost; i >= 0 && due > 0 && log.time(i) > oldest; i--) {
      if (receipt !== null && log.time(i) !== receipt.mark) continue;
      const back = Math.min(due, log.cost(i));
      log.amend(i, log.time(i), log.cost(i) - back);
      due = receipt === null ? due - back : 0;
    }
  },

  lua: `
local function bringBack(log, now)
  local i = log.size - 1
  while i >= 0 and log:time(i) > now do
    log:amend(i, now, log:cost(i))
    i = i - 1
  end
end

local function dropExpired(log, upTo)
  local expired = 0
  while expired < log.size and log:time(expired) <= upTo do expired = expired + 1 end
  if expired > 0 then log:dropOldest(expired) end
end

local function dropEmpty(log)
  local to = log.size - 1
  for i = to, 0, -1 do
    local cost = log:cost(i)
    if cost > 0 then
      log:amend(to, log:time(i), cost)
      to = to - 1
    end
  end
  log:dropOldest(to + 1)
end

local function entryFreeing(log, due)
  local i = 0
  local freed = log:cost(0)
  while freed < due do
    i = i + 1
    freed = freed + log:cost(i)
  end
  return i
end

local function lastEntry(log)
  local i = log.size - 1
  while log:cost(i) == 0 do i = i - 1 end
  return i
end

local function step(log, quota, now, cost)
  local limit, window = quota.limit, quota.windowMs
  local newest = log.size == 0 and 0 or log:time(log.size - 1)
  local ahead = newest > now + MAX_CLOCK_LEAD_MS
  if ahead then bringBack(log, now) end
  local t = max(ahead and 0 or newest, now)
  dropExpired(log, t - window)

  local used = log.total
  local allowed = used + cost <= limit
  if allowed and cost > 0 then
    local last = log.size - 1
    if last >= 0 and log:time(last) == t then
      log:amend(last, t, log:cost(last) + cost)
    else
      if log.size >= limit then dropEmpty(log) end
      log:push(t, cost)
    end
  end
  local retryAfter = 0
  if not allowed then
    if cost > limit then
      retryAfter = NEVER
    else
      retryAfter = log:time(entryFreeing(log, used + cost - limit)) + window - now
    end
  end
  return allowed,
    max(0, limit - log.total),
    retryAfter,
    log.total == 0 and 0 or log:time(lastEntry(log)) + window - now,
    0,
    t,
    t
end

local function refund(log, quota, now, cost, receipt)
  local oldest = now - quota.windowMs
  local i, due = log.size - 1, cost
  while i >= 0 and due > 0 and log:time(i) > oldest do
    if receipt == nil or log:time(i) == receipt.mark then
      local back = min(due, log:cost(i))
      log:amend(i, log:time(i), log:cost(i) - back)
      due = receipt == nil and due - back or 0
    end
    i = i - 1
  end
end

return step, refund`,
};

/**
 * Apart from `step`, which would else be too long for V8 to inline the log's reads into it: their numbers would be boxed.
 */
function writeWaits(
  log: EntryLog,
  limit: number,
  window: number,
  now: number,
  cost: number,
  out: Float64Array,
): void {
  if (out[ALLOWED] === 1) out[RETRY_AFTER] = 0;
  else if (cost > limit) out[RETRY_AFTER] = NEVER;
  else out[RETRY_AFTER] = log.time(entryFreeing(log, log.total + cost - limit)) + window - now;
  out[RESET_AFTER] = log.total === 0 ? 0 : log.time(lastEntry(log)) + window - now;
}

/** Brings entries of a clock that jumped ahead back to the present. */
function bringBack(log: EntryLog, now: number): void {
  for (let i = log.size - 1; i >= 0 && log.time(i) > now; i--) log.amend(i, now, log.cost(i));
}

/** Drops what no longer counts at `out[CHARGED_AT]`: a place is never boxed, a number handed over may be. */
function dropExpired(log: EntryLog, window: number, out: Float64Array): void {
  let expired = 0;
  while (expired < log.size && log.time(expired) <= out[CHARGED_AT]! - window) expired++;
  if (expired > 0) log.dropOldest(expired);
}

/** Closes the gaps that refunds have left, moving older entries up to newer ones. */
function dropEmpty(log: EntryLog): void {
  let to = log.size - 1;
  for (let i = to; i >= 0; i--) {
    const cost = log.cost(i);
    if (cost > 0) log.amend(to--, log.time(i), cost);
  }
  log.dropOldest(to + 1);
}

/** The entry whose expiry leaves `due` units or more free. */
function entryFreeing(log: EntryLog, due: number): number {
  let i = 0;
  for (let freed = log.cost(0); freed < due; freed += log.cost(i)) i++;
  return i;
}

/** The last entry that still holds something: a refund may have emptied later ones. */
function lastEntry(log: EntryLog): number {
  let i = log.size - 1;
  while (log.cost(i) === 0) i--;
  return i;
}
