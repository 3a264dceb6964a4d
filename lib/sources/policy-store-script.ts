import { createHash } from 'node:crypto';
import type { Script } from '../drivers/redis/universal-script.js';

/**
 * What becomes of the fleet's policies in one step. KEYS: the hash of policies, their version. Every answer is
 * `{ what happened, the version now, [policy, JSON, …] }`; the policies are left out where the version is the known one.
 *
 * ARGV: `read`, known version; then `whole` where the policies are to be told also of the known version.
 * ARGV: `store`, known version, channel, policy, the JSON it is to have replaced, the JSON it gets; '' means none.
 * ARGV: `restore`, known version, channel, then policies and their JSON: what there was before the server lost it.
 */
const SOURCE = `
local policies, version = KEYS[1], KEYS[2]
local stored = tonumber(redis.call('GET', version) or '') or 0
local known = tonumber(ARGV[2])

local function answer(outcome)
  return { outcome, string.format('%.0f', stored), redis.call('HGETALL', policies) }
end

local function publish(number)
  stored = number
  redis.call('SET', version, string.format('%.0f', stored))
  redis.call('PUBLISH', ARGV[3], string.format('%.0f', stored))
end

if ARGV[1] == 'restore' then
  if stored >= known then return answer('kept') end
  redis.call('DEL', policies)
  for i = 4, #ARGV, 2 do redis.call('HSET', policies, ARGV[i], ARGV[i + 1]) end
  publish(known)
  return answer('restored')
end

if stored < known then return { 'behind', string.format('%.0f', stored), {} } end

if ARGV[1] == 'store' then
  if (redis.call('HGET', policies, ARGV[4]) or '') ~= ARGV[5] then return answer('conflict') end
  if ARGV[6] == '' then redis.call('HDEL', policies, ARGV[4])
  else redis.call('HSET', policies, ARGV[4], ARGV[6]) end
  publish(stored + 1)
  return answer('stored')
end

if stored == known and ARGV[3] ~= 'whole' then return { 'same', string.format('%.0f', stored), {} } end
return answer('read')
`;

export const POLICY_STORE_SCRIPT: Script = {
  source: SOURCE,
  sha: createHash('sha1').update(SOURCE).digest('hex'),
};
