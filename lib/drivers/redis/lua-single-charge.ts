import { BATCH, OPERATION, RESULT } from './protocol.js';

/**
 * A batch that is one charge of one counter, admitted: what one caller asks for, and most of what goes to a node of a
 * cluster. It ends before the functions and tables of longer batches are made, which cost more than its own work. With
 * anything else nothing was written, and it goes the way of all others.
 */
export const LUA_SINGLE_CHARGE = `
-- Its numbers: not-after and time; one quota, of six from the 4th on; no key that is used twice; from the 11th on one
-- decision of one charge: key, quota, cost, block, shadow.
if #input == 17 and input[11] == ${OPERATION.decide} and input[12] == 1 then
  local algorithm = algorithmAt(input[4])
  local entry = newEntry()
  if not algorithm.isLog and not call('MGET', KEYS[2])[1] and read(entry, KEYS[1], algorithm) then
    local quota = {
      limit = input[5], windowMs = input[6], burst = input[7], maxDelayMs = input[8], idleMs = input[9],
    }
    local allowed, remaining, _, resetAfter, delay, chargedAt, mark = algorithm.step(entry, quota, now, input[15])
    if allowed then
      charged(entry, quota, chargedAt)
      writeRegisters(entry)
      expire(entry)
      return struct.pack(
        '<dddddddddd', serverTime, ${BATCH.done}, ${RESULT.done}, serial, 1, remaining, resetAfter, delay, chargedAt, mark
      )
    end
  end
end
`;
