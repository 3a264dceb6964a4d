import { createHash } from 'node:crypto';
import type { Script } from '../drivers/redis/universal-script.js';

/**
 * Reads or changes the fleet's policies in one step. KEYS: the hash of policies, their version, and which data set that is.
 * Every answer is `{ what happened, version, data set, [policy, JSON, …] }`, with nothing more than the first where all is
 * as it was known.
 *
 * ARGV: `read`, known version, known data set; then `whole` where the policies are to be told in any case.
 * ARGV: `write`, the version and the data set that are to be replaced, channel, the version and the data set from then on,
 * then policies, each with the JSON that is to be replaced and the JSON it gets; '' means none.
 */
const SOURCE = `
local policies, version, dataSet = KEYS[1], KEYS[2], KEYS[3]

local function answer(outcome)
  return {
    outcome, redis.call('GET', version) or '', redis.call('GET', dataSet) or '', redis.call('HGETALL', policies),
  }
end

local isKnown = (redis.call('GET', version) or '') == ARGV[2] and (redis.call('GET', dataSet) or '') == ARGV[3]

if ARGV[1] == 'read' then
  if isKnown and ARGV[4] ~= 'whole' then return { 'same' } end
  return answer('read')
end

if not isKnown then return answer('conflict') end
for i = 7, #ARGV, 3 do
  if (redis.call('HGET', policies, ARGV[i]) or '') ~= ARGV[i + 1] then return answer('conflict') end
end
for i = 7, #ARGV, 3 do
  if ARGV[i + 2] == '' then redis.call('HDEL', policies, ARGV[i])
  else redis.call('HSET', policies, ARGV[i], ARGV[i + 2]) end
end
redis.call('SET', version, ARGV[5])
redis.call('SET', dataSet, ARGV[6])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return answer('written')
`;

export const POLICY_STORE_SCRIPT: Script = {
  source: SOURCE,
  sha: createHash('sha1').update(SOURCE).digest('hex'),
};
