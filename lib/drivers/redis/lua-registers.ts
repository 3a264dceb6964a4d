import { HELD_CLOCK_GRACE_MS } from './protocol.js';

/** No key is kept longer, in milliseconds since the epoch: the largest whole number that is exact, less the grace. */
const LATEST = Number.MAX_SAFE_INTEGER - HELD_CLOCK_GRACE_MS;

/** Reading and writing the state of algorithms that keep registers: a hash with a field each. */
export const LUA_REGISTERS = `
-- An entry is the state that the algorithm steps, with what was read. One that is made whole is cheaper to fill.
local function newEntry()
  return { 0, 0, 0, 0, key = 0, algorithm = 0, found = 0, exists = 0, expiry = 0, made = 0, isDirty = 0, isTouched = 0 }
end

-- Reads registers; false where something else is there.
local function read(entry, key, algorithm)
  local found = try('HMGET', key, unpack(algorithm.names))
  if found.err then return false end
  local width, exists, expiry = algorithm.width, false, false
  for i = 1, width do
    local field = found[i]
    if field then
      field = tonumber(field)
      if not field then return false end
      found[i], entry[i], exists = field, field, true
    else
      entry[i] = 0
    end
  end
  if held and exists then
    expiry = tonumber(found[width + 1] or '') or now
    if expiry <= now then
      for i = 1, width do entry[i] = 0 end
      exists = false
    end
  end
  entry.key, entry.algorithm, entry.found, entry.exists, entry.expiry = key, algorithm, found, exists, expiry
  entry.made, entry.isDirty, entry.isTouched = false, false, false
  return true
end

local fields = {}

-- Of registers, only what has changed.
local function writeRegisters(entry)
  local found, made, names, n = entry.found, entry.made, entry.algorithm.names, 1
  fields[1] = entry.key
  for r = 1, entry.algorithm.width do
    local value = entry[r]
    if made or found[r] ~= value then
      fields[n + 1], fields[n + 2] = names[r], text(value)
      n = n + 2
    end
  end
  if held then
    fields[n + 1], fields[n + 2] = 'expiry', text(entry.expiry)
    n = n + 2
  end
  if made then
    fields[n + 1], fields[n + 2] = 'since', text(made)
    n = n + 2
  end
  if n > 1 then call('HSET', unpack(fields, 1, n)) end
end

-- Whole and within bounds, whatever a state that is none led to: an error here would be everybody's.
local function expire(entry)
  local expiry = ceil(min(${LATEST}, entry.expiry))
  if held then
    call('PEXPIRE', entry.key, max(1, expiry - now) + ${HELD_CLOCK_GRACE_MS})
  else
    call('PEXPIREAT', entry.key, text(max(1, expiry)))
  end
end

local function charged(entry, quota, chargedAt)
  if not entry.exists then entry.exists, entry.made = true, serial end
  entry.expiry = chargedAt + quota.idleMs
  entry.isDirty, entry.isTouched = true, true
end
`;
