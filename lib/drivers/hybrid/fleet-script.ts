import { createHash } from 'node:crypto';
import { BATCH, NONE } from '../redis/protocol.js';
import type { Script } from '../redis/universal-script.js';

/** Both scripts begin alike: what came too late does nothing, and an explicit clock's time counts where one is given. */
const PRELUDE = `
local input = cmsgpack.unpack(ARGV[1])
local notAfter, now = input[1], input[2]
local time = redis.call('TIME')
local serverTime = time[1] * 1000 + math.floor(time[2] / 1000)
if now == ${NONE} then now = serverTime end
if notAfter ~= ${NONE} and serverTime > notAfter then
  return struct.pack('<dd', serverTime, ${BATCH.late})
end
`;

/**
 * A beat, or a farewell. Key: the instances, a sorted set by the time of their last beat. Numbers: not-after, time of an
 * explicit clock, how long an instance counts after its last beat, since when beats are asked for, 1 to leave. Text: the
 * instance's name. Answers how many instances there are, this one's rank by name, and how many have beaten since then.
 */
export const BEAT_SCRIPT = scriptOf(`
local life, since, leaves = input[3], input[4], input[5]
if leaves == 1 then
  redis.call('ZREM', KEYS[1], ARGV[2])
else
  redis.call('ZADD', KEYS[1], now, ARGV[2])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
redis.call('PEXPIRE', KEYS[1], 10 * life)
local rank, names = 0, redis.call('ZRANGE', KEYS[1], 0, -1)
for i = 1, #names do
  if names[i] < ARGV[2] then rank = rank + 1 end
end
return struct.pack('<ddddd', serverTime, ${BATCH.done}, #names, rank, redis.call('ZCOUNT', KEYS[1], since, '+inf'))
`);

/**
 * Tells one data set from another. Key: a hash with the random number that the data set got when it was first seen, and
 * how often it was asked for. Numbers: not-after, time of an explicit clock, the number for a new data set, how long it
 * is kept. Answers with both: a data set that lost the last of these questions has lost more.
 */
export const DATA_SET_SCRIPT = scriptOf(`
local fresh, life = input[3], input[4]
local known = tonumber(redis.call('HGET', KEYS[1], 'dataSet') or '')
if not known then
  known = fresh
  redis.call('HSET', KEYS[1], 'dataSet', fresh, 'asked', 0)
end
local asked = redis.call('HINCRBY', KEYS[1], 'asked', 1)
redis.call('PEXPIRE', KEYS[1], life)
return struct.pack('<dddd', serverTime, ${BATCH.done}, known, asked)
`);

function scriptOf(body: string): Script {
  const source = PRELUDE + body;
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
