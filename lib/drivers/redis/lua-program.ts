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

/** Runs a batch's operations: each key is read once, decided on in memory, and written once. */
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
    if held and not algorithm.isLog then algorithm.names[#algorithm.names + 1] = 'expiry' end
    algorithms[index] = algorithm
  end
  quotas[i] = {
    algorithm = algorithm, limit = input[at + 1], windowMs = input[at + 2], burst = input[at + 3],
    maxDelayMs = input[at + 4], idleMs = input[at + 5],
  }
  at = at + 6
end

-- What is at each key: read once, written once, at the end. KEYS are a counter and its block in turn.
local counters = #KEYS / 2
local stored, states, shapes, exists, expiries, dirty, touched, order = {}, {}, {}, {}, {}, {}, {}, {}
-- By key: the serial that a counter was made with in this batch; since when and for how long its subject is blocked.
local made = {}
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

-- The state at a key; nil where something else is there.
local function load(k, quota)
  local state = states[k]
  if state then return state end
  local algorithm = quota.algorithm
  local key = KEYS[2 * k - 1]
  if algorithm.isLog then
    state = openLog(key)
    if not state then return nil end
    if held and state.exists and state.expiry <= now then
      call('UNLINK', key)
      state = openLog(key)
    end
    exists[k] = state.exists
    expiries[k] = state.expiry
  else
    local names = algorithm.names
    local fields = try('HMGET', key, unpack(names))
    if fields.err then return nil end
    local width = held and #names - 1 or #names
    local found = false
    state = width == 3 and { 0, 0, 0 } or { 0, 0, 0, 0 }
    for i = 1, width do
      local field = fields[i]
      if field then
        field = tonumber(field)
        if not field then return nil end
        found = true
      end
      state[i] = field or 0
    end
    for i = width + 1, #state do state[i] = nil end
    stored[k] = fields
    if found and held then
      expiries[k] = tonumber(fields[width + 1] or '') or now
      if expiries[k] <= now then
        for i = 1, width do state[i] = 0 end
        found = false
      end
    end
    exists[k] = found
  end
  states[k] = state
  shapes[k] = algorithm
  order[#order + 1] = k
  return state
end

-- What a trial may have to take back.
local saved = {}

local function save(k)
  local state = states[k]
  if shapes[k].isLog then
    state:save()
    return
  end
  local copy = saved[k]
  if not copy then
    copy = {}
    saved[k] = copy
  end
  for i = 1, #state do copy[i] = state[i] end
end

local function restore(k)
  local state = states[k]
  if shapes[k].isLog then
    state:restore()
    return
  end
  local copy = saved[k]
  for i = 1, #state do state[i] = copy[i] end
end

local function changed(k)
  local state = states[k]
  if shapes[k].isLog then return state:changed() end
  local copy = saved[k]
  for i = 1, #state do
    if state[i] ~= copy[i] then return true end
  end
  return false
end

local function keepUntil(k, expiry)
  expiries[k] = expiry
  touched[k] = true
end

-- Until when a key is kept that exists.
local function keptUntil(k)
  if expiries[k] then return expiries[k] end
  local left = call('PTTL', KEYS[2 * k - 1])
  return left < 0 and 0 or serverTime + left
end

-- A denial writes no more than what it corrected. Its key is kept at least until the whole quota is back.
local function keepDenied(k, quota, chargedAt, resetAfter)
  if not exists[k] then return end
  if changed(k) then dirty[k] = true end
  keepUntil(k, max(chargedAt + quota.idleMs, now + resetAfter))
end

local function broken(k)
  out[w + 1] = ${RESULT.broken}
  out[w + 2] = k
  w = w + 2
end

local function answer(allowed, remaining, retryAfter, resetAfter, delay, chargedAt, mark, blocked)
  out[w + 1] = allowed and 1 or 0
  out[w + 2] = remaining
  out[w + 3] = retryAfter
  out[w + 4] = resetAfter
  out[w + 5] = delay
  out[w + 6] = chargedAt
  out[w + 7] = mark
  out[w + 8] = blocked
  w = w + 8
end

-- A denial comes with the state it was read from, by which whoever asked can deny the next call himself.
local function appendState(k)
  if shapes[k].isLog then return end
  local state = states[k]
  for i = 1, #state do out[w + i] = state[i] end
  w = w + #state
end

local function answerDenied(k, remaining, retryAfter, resetAfter, chargedAt, mark, blocked)
  if blocked > 0 then
    answer(false, 0, max(retryAfter, blocked), max(resetAfter, blocked), 0, chargedAt, mark, blocked)
  else
    answer(false, remaining, retryAfter, resetAfter, 0, chargedAt, mark, 0)
  end
  appendState(k)
end

-- Starts the policy's own block where this denial is its own; returns for how long the subject is blocked.
local function blockAfterDenial(k, blocked, duration, shadow)
  if blocked > 0 or shadow == 1 or duration == 0 then return blocked end
  setBlock(k, duration)
  return duration
end

local function charged(k, quota, chargedAt)
  if not exists[k] then exists[k], made[k] = true, serial end
  dirty[k] = true
  keepUntil(k, chargedAt + quota.idleMs)
end

-- One charge that is not blocked: the same as a group of one, in place, which is most of what is asked.
local function decideOne()
  local k, quota, cost, block = input[at], quotas[input[at + 1]], input[at + 2], input[at + 3]
  local shadow = input[at + 4]
  at = at + 5
  local state = states[k] or load(k, quota)
  if not state then return broken(k) end
  local isLog = quota.algorithm.isLog
  local r1, r2, r3, r4
  if isLog then state:save() else r1, r2, r3, r4 = state[1], state[2], state[3], state[4] end
  local allowed, remaining, retryAfter, resetAfter, delay, chargedAt, mark =
    quota.algorithm.step(state, quota, now, cost)
  if allowed then
    charged(k, quota, chargedAt)
    local o = w
    out[o + 1] = ${RESULT.done}
    out[o + 2] = serial
    out[o + 3] = 1
    out[o + 4] = remaining
    out[o + 5] = 0
    out[o + 6] = resetAfter
    out[o + 7] = delay
    out[o + 8] = chargedAt
    out[o + 9] = mark
    out[o + 10] = 0
    w = o + 10
    return
  end
  out[w + 1] = ${RESULT.denied}
  out[w + 2] = serial
  w = w + 2
  if exists[k] then
    local differs
    if isLog then
      differs = state:changed()
    else
      differs = r1 ~= state[1] or r2 ~= state[2] or r3 ~= state[3] or r4 ~= state[4] or #state > 4
    end
    if differs then dirty[k] = true end
    keepUntil(k, max(chargedAt + quota.idleMs, now + resetAfter))
  end
  answerDenied(k, remaining, retryAfter, resetAfter, chargedAt, mark, blockAfterDenial(k, 0, block, shadow))
end

-- Everything else, made when a batch first needs it: functions that nobody calls cost each run of the script.
local function otherOperations()
local trial, uses, totals = {}, {}, {}

-- What is left at a key without a charge, and until when all is back.
local function measure(k, quota)
  local _, remaining, _, resetAfter = quota.algorithm.step(states[k], quota, now, 0)
  return remaining, resetAfter
end

-- When all that a group takes of one counter would be admitted: the state holds none of it.
local function retryAfterAll(k, quota, total, otherwise)
  save(k)
  local allowed, _, retryAfter = quota.algorithm.step(states[k], quota, now, total)
  restore(k)
  return allowed and otherwise or retryAfter
end

-- Tries each charge on what those before it left: the outcome, whether it passes, for how long its subject is blocked,
-- whether the arithmetic alone would admit it, and what the group takes of its counter up to it.
local TRIAL = 10

local function try_all(first, count)
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
      quota.algorithm.step(states[k], quota, now, cost)
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
      keepDenied(k, quotas[input[c + 1]], trial[t + 6], trial[t + 4])
    end
  end
end

local function decide(count)
  local first = at
  at = at + 5 * count
  for j = 0, count - 1 do
    local k = input[first + 5 * j]
    if not load(k, quotas[input[first + 5 * j + 1]]) then return broken(k) end
    uses[k], totals[k] = 0, 0
  end

  local passes = try_all(first, count)
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
      charged(k, quota, trial[t + 6])
      answer(true, remaining, 0, resetAfter, trial[t + 5], trial[t + 6], trial[t + 7], 0)
    elseif trial[t + 9] then
      -- Admitted in itself: kept out by others of the group, or by a block.
      if passes then restore(k) end
      remaining, resetAfter = measure(k, quota)
      if blocked > 0 then
        answerDenied(k, remaining, 0, resetAfter, trial[t + 6], trial[t + 7], blocked)
      else
        answer(true, remaining, 0, resetAfter, trial[t + 5], trial[t + 6], trial[t + 7], 0)
      end
    else
      if passes then
        keepDenied(k, quota, trial[t + 6], resetAfter)
      else
        if trial[t + 10] ~= cost then retryAfter = retryAfterAll(k, quota, trial[t + 10], retryAfter) end
        blocked = blockAfterDenial(k, blocked, input[c + 3], input[c + 4])
      end
      answerDenied(k, remaining, retryAfter, resetAfter, trial[t + 6], trial[t + 7], blocked)
    end
  end
end

local function peek()
  local k, quota = input[at], quotas[input[at + 1]]
  at = at + 2
  if not load(k, quota) then return broken(k) end
  local blocked = blockedMs(k)
  save(k)
  local allowed, remaining, retryAfter, resetAfter, delay, chargedAt, mark =
    quota.algorithm.step(states[k], quota, now, 1)
  restore(k)
  if allowed then
    save(k)
    remaining, resetAfter = measure(k, quota)
    restore(k)
  end
  -- A lowered limit takes longer to be gone than the counter was to be kept.
  if exists[k] and keptUntil(k) < now + resetAfter then keepUntil(k, now + resetAfter) end
  out[w + 1] = ${RESULT.done}
  w = w + 1
  if blocked > 0 then
    answer(false, 0, max(retryAfter, blocked), max(resetAfter, blocked), 0, chargedAt, mark, blocked)
  else
    answer(allowed, remaining, retryAfter, resetAfter, delay, chargedAt, mark, 0)
  end
end

-- Only takes: whoever remembers a denial may go on doing so.
local function settle(k, quota, most, cost)
  if not load(k, quota) then return broken(k) end
  save(k)
  local step = quota.algorithm.step
  local _, remaining = step(states[k], quota, now, 0)
  local excess = max(0, remaining - most)
  local taken = excess + min(cost, remaining - excess)
  if taken > 0 then
    local allowed, left, _, _, _, chargedAt = step(states[k], quota, now, taken)
    if allowed then
      remaining = left
      charged(k, quota, chargedAt)
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
local function since(k)
  if made[k] or not exists[k] then return made[k] or 0 end
  if shapes[k].isLog then return states[k].since end
  return tonumber(call('HGET', KEYS[2 * k - 1], 'since') or '') or 0
end

local function refund(k, quota, announce, cost, receipt)
  if not load(k, quota) then return broken(k) end
  local forgotten = receipt ~= nil and receipt.serial ~= ${NONE} and receipt.serial < since(k)
  if exists[k] and not forgotten then
    quota.algorithm.refund(states[k], quota, now, cost, receipt)
    dirty[k] = true
  end
  done(k, announce)
end

local function reset(k)
  call('UNLINK', KEYS[2 * k - 1])
  if states[k] then
    if shapes[k].isLog then
      states[k] = openLog(KEYS[2 * k - 1])
    else
      for i = 1, #states[k] do states[k][i] = 0 end
    end
    exists[k], dirty[k], touched[k], made[k], expiries[k] = false, nil, nil, nil, nil
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
return operations
end

local others
while at <= #input do
  local operation = input[at]
  if operation == ${OPERATION.decide} and input[at + 1] == 1 and blocks[input[at + 2]] == 0 then
    at = at + 2
    decideOne()
  else
    others = others or otherOperations()
    others[operation]()
  end
end

local fields = {}
for i = 1, #order do
  local k = order[i]
  local key, expiry = KEYS[2 * k - 1], expiries[k]
  if dirty[k] then
    local state, algorithm = states[k], shapes[k]
    if algorithm.isLog then
      state.expiry = expiry
      state.since = made[k] or state.since
      state:flush()
    else
      -- Only what has changed: making text of a number is the most expensive thing here.
      local width, names, before, n = #state, algorithm.names, stored[k], 1
      fields[1] = key
      for r = 1, width do
        local field = not made[k] and before[r]
        if not field or tonumber(field) ~= state[r] then
          fields[n + 1], fields[n + 2] = names[r], state[r]
          n = n + 2
        end
      end
      if held then
        fields[n + 1], fields[n + 2] = names[width + 1], expiry
        n = n + 2
      end
      if made[k] then
        fields[n + 1], fields[n + 2] = 'since', made[k]
        n = n + 2
      end
      if n > 1 then call('HSET', unpack(fields, 1, n)) end
    end
  elseif touched[k] then
    if shapes[k].isLog then
      call('LSET', key, 1, expiry)
    elseif held then
      call('HSET', key, 'expiry', expiry)
    end
  end
  if touched[k] then
    if held then
      call('PEXPIRE', key, max(1, expiry - now) + ${HELD_CLOCK_GRACE_MS})
    else
      call('PEXPIREAT', key, expiry)
    end
  end
end

local reply = {}
for from = 1, w, 2000 do
  local to = min(w, from + 1999)
  reply[#reply + 1] = struct.pack('<' .. string.rep('d', to - from + 1), unpack(out, from, to))
end
return #reply == 1 and reply[1] or table.concat(reply)
`;
