import { BATCH, HELD_CLOCK_GRACE_MS, NONE, OPERATION, RESULT } from './protocol.js';

/** Reads the batch's own numbers and the time; ends what comes too late. */
export const LUA_PRELUDE = `
local input = cmsgpack.unpack(ARGV[1])
local notAfter, now = input[1], input[2]
local held = now ~= ${NONE}
local time = call('TIME')
local serverTime = time[1] * 1000 + floor(time[2] / 1000)
-- Orders charges and resets: in microseconds, and one more after each reset of this batch.
local serial = time[1] * 1000000 + time[2]
if not held then now = serverTime end
if notAfter ~= ${NONE} and serverTime > notAfter then
  return struct.pack('<dd', serverTime, ${BATCH.late})
end
`;

/**
 * Runs a batch's operations. A charge that is admitted, of a key that nothing else in the batch uses, is read, decided and
 * written at once. Any other key is kept in memory from its first use on, and written once, at the end.
 */
export const LUA_MAIN = `
local out, w = { serverTime, ${BATCH.done} }, 2

-- Quotas, each once a batch.
local algorithms, quotas = {}, {}
local at = 4
for i = 1, input[3] do
  local index = input[at]
  local algorithm = algorithms[index]
  if not algorithm then
    algorithm = algorithmAt(index)
    algorithms[index] = algorithm
  end
  quotas[i] = {
    algorithm = algorithm, limit = input[at + 1], windowMs = input[at + 2], burst = input[at + 3],
    maxDelayMs = input[at + 4], idleMs = input[at + 5],
  }
  at = at + 6
end

-- The counters that are used more than once: they are kept in memory until the end.
local isHot = {}
for i = at + 1, at + input[at] do isHot[input[i]] = true end
at = at + 1 + input[at]

-- Until when each subject is blocked, and for how long it was. KEYS are a counter and its block in turn.
local counters = #KEYS / 2
local blocks, blockDurations = {}, {}
do
  local keys = {}
  for from = 1, counters, 1000 do
    local count = min(1000, counters - from + 1)
    for i = 1, count do keys[i] = KEYS[2 * (from + i - 1)] end
    local found = call('MGET', unpack(keys, 1, count))
    for i = 1, count do
      local k, block = from + i - 1, found[i]
      blocks[k] = 0
      if block then
        local blockedUntil, duration = string.match(block, '^(%d+) (%d+)$')
        if duration then blocks[k], blockDurations[k] = tonumber(blockedUntil), tonumber(duration) end
      end
    end
  end
end

local function broken(k)
  out[w + 1] = ${RESULT.broken}
  out[w + 2] = k
  w = w + 2
end

-- By key: what is kept in memory until the end, and in which order it came.
local entries, order = {}, {}

-- Everything but charges that are admitted, made when a batch first needs it: functions that nobody calls cost each run
-- of the script.
local function otherOperations()
local trial, saved, uses, totals = {}, {}, {}, {}

-- The entry of a key, from now on kept in memory; nil where something else is there.
local function load(k, quota)
  local algorithm, key = quota.algorithm, KEYS[2 * k - 1]
  local entry
  if algorithm.isLog then
    entry = openLog(key)
    if entry and held and entry.exists and entry.expiry <= now then
      call('UNLINK', key)
      entry = openLog(key)
    end
    if not entry then return nil end
    entry.algorithm, entry.index = algorithm, k
  else
    entry = {}
    if not read(entry, key, algorithm) then return nil end
  end
  entries[k] = entry
  order[#order + 1] = entry
  return entry
end

local function keepUntil(entry, expiry)
  entry.expiry = expiry
  entry.isTouched = true
end

local function answerAllowed(remaining, resetAfter, delay, chargedAt, mark)
  out[w + 1] = 1
  out[w + 2] = remaining
  out[w + 3] = resetAfter
  out[w + 4] = delay
  out[w + 5] = chargedAt
  out[w + 6] = mark
  w = w + 6
end

-- The value is two numbers, which Redis makes into text.
local function setBlock(k, duration)
  local key, blockedUntil = KEYS[2 * k], now + duration
  blocks[k], blockDurations[k] = blockedUntil, duration
  call('SET', key, blockedUntil)
  call('APPEND', key, ' ')
  call('APPEND', key, duration)
  if held then
    call('PEXPIRE', key, duration + ${HELD_CLOCK_GRACE_MS})
  else
    call('PEXPIREAT', key, blockedUntil)
  end
end

local function forgetBlock(k)
  blocks[k] = 0
  call('UNLINK', KEYS[2 * k])
end

local function blockedMs(k)
  if blocks[k] == 0 then return 0 end
  -- Made by a clock that was far ahead: it begins now, or it would never end.
  if blocks[k] - blockDurations[k] > now + MAX_CLOCK_LEAD_MS then setBlock(k, blockDurations[k]) end
  return max(0, blocks[k] - now)
end

-- What a trial may have to take back.
local function save(k)
  local entry = entries[k]
  if entry.algorithm.isLog then return entry:save() end
  local copy = saved[k]
  if not copy then
    copy = {}
    saved[k] = copy
  end
  for i = 1, entry.algorithm.width do copy[i] = entry[i] end
end

local function restore(k)
  local entry = entries[k]
  if entry.algorithm.isLog then return entry:restore() end
  local copy = saved[k]
  for i = 1, entry.algorithm.width do entry[i] = copy[i] end
end

-- Until when a key is kept that exists.
local function keptUntil(entry)
  if entry.expiry then return entry.expiry end
  local left = call('PTTL', entry.key)
  return left < 0 and 0 or serverTime + left
end

-- A denial writes no more than what it corrected. Its key is kept at least until the whole quota is back.
local function keepDenied(entry, quota, chargedAt, resetAfter)
  if not entry.exists then return end
  if not entry.algorithm.isLog or entry:changed() then entry.isDirty = true end
  keepUntil(entry, max(chargedAt + quota.idleMs, now + resetAfter))
end

-- A denial comes with the state it was read from, by which whoever asked can deny the next call himself.
local function answerDenied(k, remaining, retryAfter, resetAfter, blocked)
  if blocked > 0 then
    remaining, retryAfter, resetAfter = 0, max(retryAfter, blocked), max(resetAfter, blocked)
  end
  out[w + 1] = 0
  out[w + 2] = remaining
  out[w + 3] = retryAfter
  out[w + 4] = resetAfter
  out[w + 5] = blocked
  w = w + 5
  local entry = entries[k]
  if entry.algorithm.isLog then return end
  for i = 1, entry.algorithm.width do
    w = w + 1
    out[w] = entry[i]
  end
end

-- Starts the policy's own block where this denial is its own; returns for how long the subject is blocked.
local function blockAfterDenial(k, blocked, duration, shadow)
  if blocked > 0 or shadow == 1 or duration == 0 then return blocked end
  setBlock(k, duration)
  return duration
end

-- What is left at a key without a charge, and until when all is back.
local function measure(k, quota)
  local _, remaining, _, resetAfter = quota.algorithm.step(entries[k], quota, now, 0)
  return remaining, resetAfter
end

-- When all that a group takes of one counter would be admitted: the state holds none of it.
local function retryAfterAll(k, quota, total, otherwise)
  save(k)
  local allowed, _, retryAfter = quota.algorithm.step(entries[k], quota, now, total)
  restore(k)
  return allowed and otherwise or retryAfter
end

-- Tries each charge on what those before it left: the outcome, whether it passes, for how long its subject is blocked,
-- whether the arithmetic alone would admit it, and what the group takes of its counter up to it.
local TRIAL = 10

local function tryAll(first, count)
  local passes = true
  for j = 0, count - 1 do
    local c, t = first + 5 * j, TRIAL * j
    local k, quota, cost = input[c], quotas[input[c + 1]], input[c + 2]
    if uses[k] == 0 then save(k) end
    uses[k] = uses[k] + 1
    totals[k] = totals[k] + cost
    local blocked = blockedMs(k)
    local allowed
    allowed, trial[t + 2], trial[t + 3], trial[t + 4], trial[t + 5], trial[t + 6], trial[t + 7] =
      quota.algorithm.step(entries[k], quota, now, cost)
    trial[t + 1] = allowed and blocked == 0
    trial[t + 8] = blocked
    trial[t + 9] = allowed
    trial[t + 10] = totals[k]
    if not trial[t + 1] and input[c + 4] == 0 then passes = false end
  end
  return passes
end

local function takeBack(first, count)
  for j = 0, count - 1 do
    local c, t = first + 5 * j, TRIAL * j
    local k = input[c]
    if trial[t + 9] or uses[k] > 1 then
      restore(k)
    else
      keepDenied(entries[k], quotas[input[c + 1]], trial[t + 6], trial[t + 4])
    end
  end
end

local function decide(count)
  local first = at
  at = at + 5 * count
  for j = 0, count - 1 do
    local k = input[first + 5 * j]
    if not (entries[k] or load(k, quotas[input[first + 5 * j + 1]])) then return broken(k) end
    uses[k], totals[k] = 0, 0
  end

  local passes = tryAll(first, count)
  out[w + 1] = passes and ${RESULT.done} or ${RESULT.denied}
  out[w + 2] = serial
  w = w + 2
  if not passes then takeBack(first, count) end

  for j = 0, count - 1 do
    local c, t = first + 5 * j, TRIAL * j
    local k, quota, cost = input[c], quotas[input[c + 1]], input[c + 2]
    local remaining, retryAfter, resetAfter = trial[t + 2], trial[t + 3], trial[t + 4]
    local blocked = trial[t + 8]
    if trial[t + 1] and passes then
      charged(entries[k], quota, trial[t + 6])
      answerAllowed(remaining, resetAfter, trial[t + 5], trial[t + 6], trial[t + 7])
    elseif trial[t + 9] then
      -- Admitted in itself: kept out by others of the group, or by a block.
      if passes then restore(k) end
      remaining, resetAfter = measure(k, quota)
      if blocked > 0 then
        answerDenied(k, remaining, 0, resetAfter, blocked)
      else
        answerAllowed(remaining, resetAfter, trial[t + 5], trial[t + 6], trial[t + 7])
      end
    else
      if passes then
        keepDenied(entries[k], quota, trial[t + 6], resetAfter)
      else
        if trial[t + 10] ~= cost then retryAfter = retryAfterAll(k, quota, trial[t + 10], retryAfter) end
        blocked = blockAfterDenial(k, blocked, input[c + 3], input[c + 4])
      end
      answerDenied(k, remaining, retryAfter, resetAfter, blocked)
    end
  end
end

local function peek()
  local k, quota = input[at], quotas[input[at + 1]]
  at = at + 2
  local entry = entries[k] or load(k, quota)
  if not entry then return broken(k) end
  local blocked = blockedMs(k)
  save(k)
  local allowed, remaining, retryAfter, resetAfter, delay, chargedAt, mark =
    quota.algorithm.step(entry, quota, now, 1)
  restore(k)
  if allowed then
    save(k)
    remaining, resetAfter = measure(k, quota)
    restore(k)
  end
  -- A lowered limit takes longer to be gone than the counter was to be kept.
  if entry.exists and keptUntil(entry) < now + resetAfter then keepUntil(entry, now + resetAfter) end
  out[w + 1] = ${RESULT.done}
  w = w + 1
  if allowed and blocked == 0 then
    answerAllowed(remaining, resetAfter, delay, chargedAt, mark)
  else
    answerDenied(k, remaining, retryAfter, resetAfter, blocked)
  end
end

-- Only takes: whoever remembers a denial may go on doing so.
local function settle(k, quota, most, cost)
  local entry = entries[k] or load(k, quota)
  if not entry then return broken(k) end
  save(k)
  local step = quota.algorithm.step
  local _, remaining = step(entry, quota, now, 0)
  local excess = max(0, remaining - most)
  local taken = excess + min(cost, remaining - excess)
  if taken > 0 then
    local allowed, left, _, _, _, chargedAt = step(entry, quota, now, taken)
    if allowed then
      remaining = left
      charged(entry, quota, chargedAt)
    end
  end
  out[w + 1] = ${RESULT.done}
  out[w + 2] = remaining
  w = w + 2
end

local function done(k, announce)
  out[w + 1] = ${RESULT.done}
  w = w + 1
  -- Who may not publish is no reason to fail: what others remember lives a second at most.
  if announce == 1 then try('PUBLISH', ARGV[2], KEYS[2 * k - 1]) end
end

-- The serial that a counter was made with: charges before that were of another, which a reset has forgotten.
local function since(entry)
  if entry.made or not entry.exists then return entry.made or 0 end
  if entry.algorithm.isLog then return entry.since end
  return tonumber(call('HGET', entry.key, 'since') or '') or 0
end

local function refund(k, quota, announce, cost, receipt)
  local entry = entries[k] or load(k, quota)
  if not entry then return broken(k) end
  save(k)
  local forgotten = receipt ~= nil and receipt.serial ~= ${NONE} and receipt.serial < since(entry)
  if entry.exists and not forgotten then
    quota.algorithm.refund(entry, quota, now, cost, receipt)
    entry.isDirty = true
  end
  done(k, announce)
end

local function reset(k)
  call('UNLINK', KEYS[2 * k - 1])
  local entry = entries[k]
  if entry then
    -- The next operation reads it anew.
    entry.isDirty, entry.isTouched = false, false
    entries[k] = nil
  end
  serial = serial + 1
  forgetBlock(k)
end

local operations = {}
operations[${OPERATION.decide}] = function()
  local count = input[at + 1]
  at = at + 2
  decide(count)
end
operations[${OPERATION.peek}] = function()
  at = at + 1
  peek()
end
operations[${OPERATION.refund}] = function()
  local k, cost = input[at + 1], input[at + 4]
  local receipt = {
    cost = cost, limit = input[at + 5], windowMs = input[at + 6], chargedAt = input[at + 7], mark = input[at + 8],
    serial = input[at + 9],
  }
  refund(k, quotas[input[at + 2]], input[at + 3], cost, receipt)
  at = at + 10
end
operations[${OPERATION.giveBack}] = function()
  refund(input[at + 1], quotas[input[at + 2]], input[at + 3], input[at + 4])
  at = at + 5
end
operations[${OPERATION.reset}] = function()
  reset(input[at + 1])
  done(input[at + 1], input[at + 2])
  at = at + 3
end
operations[${OPERATION.block}] = function()
  setBlock(input[at + 1], input[at + 3])
  done(input[at + 1], input[at + 2])
  at = at + 4
end
operations[${OPERATION.unblock}] = function()
  forgetBlock(input[at + 1])
  done(input[at + 1], input[at + 2])
  at = at + 3
end
operations[${OPERATION.settle}] = function()
  settle(input[at + 1], quotas[input[at + 2]], input[at + 3], input[at + 4])
  at = at + 5
end

-- How many numbers each takes; a decision takes more for each charge.
local lengths = {
  [${OPERATION.peek}] = 3, [${OPERATION.refund}] = 10, [${OPERATION.giveBack}] = 5, [${OPERATION.settle}] = 5,
}

-- Takes back what an operation did that met an entry which is none, deep in a log: the others go on.
local function giveUp(log, from, written)
  local operation = input[from]
  w = written
  if operation == ${OPERATION.decide} then
    local count = input[from + 1]
    at = from + 2 + 5 * count
    for j = 0, count - 1 do
      local k = input[from + 2 + 5 * j]
      if uses[k] > 0 then restore(k) end
    end
  else
    at = from + lengths[operation]
    restore(input[from + 1])
  end
  broken(log.index)
end

return function(operation)
  local from, written = at, w
  local fine, problem = pcall(operations[operation])
  if fine then return end
  local log = type(problem) == 'table' and problem.brokenLog
  if not log then error(problem, 0) end
  giveUp(log, from, written)
end
end

-- Charges a group of counters, all of registers, none of them blocked or used by another charge, in one go. With the
-- first denial, or anything else that is unusual, nothing was written, and the group goes the long way: false. Most of
-- what is asked for ends here.
local group = {}

local function chargeAtOnce(count)
  local c, o = at + 2, w + 2
  for j = 1, count do
    local k, quota = input[c], quotas[input[c + 1]]
    local algorithm = quota.algorithm
    if isHot[k] or blocks[k] ~= 0 or algorithm.isLog then return false end
    local entry = group[j]
    if not entry then
      entry = newEntry()
      group[j] = entry
    end
    if not read(entry, KEYS[2 * k - 1], algorithm) then return false end
    local allowed, remaining, _, resetAfter, delay, chargedAt, mark = algorithm.step(entry, quota, now, input[c + 2])
    if not allowed then return false end
    charged(entry, quota, chargedAt)
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5], out[o + 6] =
      1, remaining, resetAfter, delay, chargedAt, mark
    c, o = c + 5, o + 6
  end
  for j = 1, count do
    writeRegisters(group[j])
    expire(group[j])
  end
  out[w + 1], out[w + 2] = ${RESULT.done}, serial
  at, w = c, o
  return true
end

local others
while at <= #input do
  local operation = input[at]
  if operation ~= ${OPERATION.decide} or not chargeAtOnce(input[at + 1]) then
    others = others or otherOperations()
    others(operation)
  end
end

for i = 1, #order do
  local entry = order[i]
  local isLog = entry.algorithm.isLog
  if entry.isDirty and isLog then
    entry.since = entry.made or entry.since
    entry:flush()
  elseif entry.isDirty then
    writeRegisters(entry)
  elseif entry.isTouched and isLog then
    call('LSET', entry.key, 1, text(entry.expiry))
  elseif entry.isTouched and held then
    call('HSET', entry.key, 'expiry', text(entry.expiry))
  end
  if entry.isTouched then expire(entry) end
end

local reply = {}
for from = 1, w, 2000 do
  local to = min(w, from + 1999)
  reply[#reply + 1] = struct.pack('<' .. string.rep('d', to - from + 1), unpack(out, from, to))
end
return #reply == 1 and reply[1] or table.concat(reply)
`;
