import { MAX_CLOCK_LEAD_MS, type Algorithm } from '../../core/algorithm.js';

/** What an algorithm's source may call, and the two ways to call Redis. */
export const LUA_SCOPE = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local NEVER, MAX_CLOCK_LEAD_MS = math.huge, ${MAX_CLOCK_LEAD_MS}
local call, try = redis.call, redis.pcall
local KEYS, ARGV, tonumber, unpack = KEYS, ARGV, tonumber, unpack

-- A number as Redis is to keep it: Lua makes text of a whole number, exactly, in a third of the time that Redis takes.
local texts, format = {}, string.format
local function text(number)
  local known = texts[number]
  if known then return known end
  if number % 1 ~= 0 or number >= ${2 ** 53} or number <= ${-(2 ** 53)} then return number end
  known = format('%d', number)
  texts[number] = known
  return known
end
`;

/**
 * A log on a list: total, expiry and the serial it was made with first, then a time and a cost for each entry. Reads are kept, writes are held back
 * until \`flush\`, so that a trial can be taken back and a broken key elsewhere in the group finds nothing changed.
 */
export const LUA_LOG = `
local HEADER, AT_FIRST, CHUNK = 3, 4, 32

-- Made when a batch first has a log: functions that nobody calls cost each run of the script.
local function logClass()
local Log = {}
Log.__index = Log

function Log.open(key)
  local length = try('LLEN', key)
  if type(length) == 'table' then return nil end
  if length > 0 and (length < HEADER or (length - HEADER) % 2 ~= 0) then return nil end
  local log = setmetatable({
    key = key, exists = length > 0, stored = max(0, (length - HEADER) / 2), first = 0, size = 0, total = 0,
    times = {}, costs = {}, amended = {},
  }, Log)
  log.size = log.stored
  if not log.exists then return log end
  -- The oldest entries are all that most calls look at.
  local head = call('LRANGE', key, 0, HEADER + 2 * AT_FIRST - 1)
  log.total, log.expiry, log.since = tonumber(head[1]), tonumber(head[2]), tonumber(head[3])
  if not log.total or not log.expiry or not log.since or not log:keep(0, head, HEADER) then return nil end
  log.found = { log.total, log.expiry, log.since }
  return log
end

-- Entries have the number they had when the log was opened: log.first is that of the oldest one left.
function Log:keep(from, values, offset)
  for i = offset + 1, #values - 1, 2 do
    local entry = from + (i - offset - 1) / 2
    local time, cost = tonumber(values[i]), tonumber(values[i + 1])
    if not time or not cost then return false end
    if self.times[entry] == nil then
      self.times[entry] = time
      self.costs[entry] = cost
    end
  end
  return true
end

function Log:fetch(entry)
  local from = entry - entry % CHUNK
  local at = HEADER + 2 * from
  if not self:keep(from, call('LRANGE', self.key, at, at + 2 * CHUNK - 1), 0) or self.times[entry] == nil then
    error({ brokenLog = self })
  end
end

function Log:time(i)
  local entry = self.first + i
  if self.times[entry] == nil then self:fetch(entry) end
  return self.times[entry]
end

function Log:cost(i)
  local entry = self.first + i
  if self.costs[entry] == nil then self:fetch(entry) end
  return self.costs[entry]
end

function Log:push(time, cost)
  local entry = self.first + self.size
  self.times[entry] = time
  self.costs[entry] = cost
  self.size = self.size + 1
  self.total = self.total + cost
end

function Log:dropOldest(count)
  for i = 0, count - 1 do self.total = self.total - self:cost(i) end
  self.first = self.first + count
  self.size = self.size - count
end

function Log:amend(i, time, cost)
  local entry = self.first + i
  self.total = self.total + cost - self:cost(i)
  if self.before then self.before[#self.before + 1] = { entry, self:time(i), self.costs[entry] } end
  self.times[entry] = time
  self.costs[entry] = cost
  if entry < self.stored then self.amended[entry] = true end
end

function Log:save()
  self.before = { first = self.first, size = self.size, total = self.total }
end

function Log:restore()
  local before = self.before
  for i = #before, 1, -1 do
    local entry = before[i][1]
    self.times[entry] = before[i][2]
    self.costs[entry] = before[i][3]
  end
  local pushedFrom = max(before.first + before.size, 0)
  for entry = pushedFrom, self.first + self.size - 1 do
    self.times[entry] = nil
    self.costs[entry] = nil
  end
  self.first, self.size, self.total = before.first, before.size, before.total
end

function Log:changed()
  local before = self.before
  return self.first ~= before.first or self.size ~= before.size or #before > 0
end

function Log:flush()
  local key, stored, first = self.key, self.stored, self.first
  if self.size == 0 then
    call('UNLINK', key)
    return
  end
  local found, moved = self.found, false
  if not found then
    call('RPUSH', key, text(self.total), text(self.expiry), text(self.since))
  elseif first >= stored then
    -- Nothing that was stored is left.
    call('LTRIM', key, 0, HEADER - 1)
  elseif first > 0 then
    -- What was the last of the dropped entries makes room for the header.
    call('LTRIM', key, 2 * first, -1)
    moved = true
  end
  if found then
    if moved or self.total ~= found[1] then call('LSET', key, 0, text(self.total)) end
    if moved or self.expiry ~= found[2] then call('LSET', key, 1, text(self.expiry)) end
    if moved or self.since ~= found[3] then call('LSET', key, 2, text(self.since)) end
  end
  for entry in pairs(self.amended) do
    if entry >= first then
      call('LSET', key, HEADER + 2 * (entry - first), text(self.times[entry]))
      call('LSET', key, HEADER + 2 * (entry - first) + 1, text(self.costs[entry]))
    end
  end
  for entry = max(stored, first), first + self.size - 1 do
    call('RPUSH', key, text(self.times[entry]), text(self.costs[entry]))
  end
end

return Log
end

local logs
local function openLog(key)
  logs = logs or logClass()
  return logs.open(key)
end
`;

/**
 * Each algorithm's functions are made when a batch first needs them, and not in every run of the script. Gives whether
 * it is a log, the names of what is read, how many of them are registers, step and refund.
 */
export function luaOf(algorithms: readonly Algorithm[]): string {
  const branches = algorithms.map((algorithm, i) => {
    const registers = algorithm.shape === 'registers' ? algorithm.registers : [];
    const names = registers.map((name) => JSON.stringify(fieldOf(name))).join(', ');
    return `  ${i === 0 ? 'if' : 'elseif'} index == ${i + 1} then
    local step, refund = (function() ${algorithm.lua}
    end)()
    algorithm = { isLog = ${algorithm.shape === 'log'}, names = { ${names} }, step = step, refund = refund }`;
  });
  return `
local function algorithmAt(index)
  local algorithm
${branches.join('\n')}
  end
  local names = algorithm.names
  algorithm.width = #names
  if held and not algorithm.isLog then names[#names + 1] = 'expiry' end
  return algorithm
end
`;
}

/** The field of a register. `since` and `expiry` stand in the same hash, and are the driver's own. */
function fieldOf(register: string): string {
  return /^_*(?:since|expiry)$/.test(register) ? `_${register}` : register;
}
