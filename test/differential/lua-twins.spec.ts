import { ALGORITHMS } from '../../lib/algorithms/index.js';
import type { Algorithm, Quota, Receipt } from '../../lib/core/algorithm.js';
import { LUA_LOG, LUA_SCOPE, luaOf } from '../../lib/drivers/redis/lua-parts.js';
import { NumberPacker } from '../../lib/drivers/redis/number-packer.js';
import { AlgorithmSubject } from '../../lib/testing/algorithm-subject.js';
import { anyRedis } from '../support/redis-servers.js';

/** In each sequence one subject lives on; each sequence is one command. */
const SEQUENCES = 340;
const STEPS = 100;

/**
 * Runs a sequence on a key, and reads the state back from it after every step: what is compared has been to Redis' own
 * text and back, as in service.
 */
const RUN = `
local input, out, w, at = cmsgpack.unpack(ARGV[1]), {}, 0, 1
local algorithm, key = algorithmAt(1), KEYS[1]
local names = algorithm.names

local function put(number)
  w = w + 1
  out[w] = number
end

local function load()
  if algorithm.isLog then return openLog(key) end
  local state = {}
  for i, field in ipairs(call('HMGET', key, unpack(names))) do state[i] = field and tonumber(field) or 0 end
  return state
end

while at <= #input do
  local now, cost, kind = input[at], input[at + 1], input[at + 2]
  local quota = { limit = input[at + 3], windowMs = input[at + 4], burst = input[at + 5], maxDelayMs = input[at + 6] }
  local state = load()
  if kind == 0 then
    local outcome = { algorithm.step(state, quota, now, cost) }
    put(outcome[1] and 1 or 0)
    for i = 2, 7 do put(outcome[i]) end
  else
    local receipt
    if kind == 1 then
      receipt = {
        cost = cost, limit = input[at + 7], windowMs = input[at + 8], chargedAt = input[at + 9], mark = input[at + 10],
      }
    end
    algorithm.refund(state, quota, now, cost, receipt)
  end
  at = at + 11
  if algorithm.isLog then
    state.expiry, state.since = 0, 0
    state:flush()
    local stored = call('LRANGE', key, 3, -1)
    put(#stored)
    for i = 1, #stored do put(tonumber(stored[i])) end
  else
    local fields = {}
    for i = 1, #names do fields[2 * i - 1], fields[2 * i] = names[i], state[i] end
    call('HSET', key, unpack(fields))
    for _, number in ipairs(load()) do put(number) end
  end
end
call('DEL', key)
local reply = {}
for from = 1, w, 2000 do
  local to = min(w, from + 1999)
  reply[#reply + 1] = struct.pack('<' .. string.rep('d', to - from + 1), unpack(out, from, to))
end
return table.concat(reply)
`;

let redis: Awaited<ReturnType<typeof anyRedis>>;
beforeAll(async () => {
  redis = await anyRedis();
});
afterAll(() => redis.stop());

/** A source of numbers that are the same in every run. Source: T. Schmidt's and B. Rudiak-Gould's mulberry32. */
function seeded(seed: number) {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const whole = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  const one = <T>(...of: readonly T[]): T => of[whole(0, of.length - 1)]!;
  return { next, whole, one };
}

type Random = ReturnType<typeof seeded>;

function quotaOf({ whole, one, next }: Random, isLog: boolean): Quota {
  const windowMs = one(whole(1, 20), whole(1, 5_000), 1_000, 60_000, 86_400_000, whole(1, 2 ** 31));
  const largest = isLog ? 60 : Math.floor(2 ** 52 / windowMs);
  const most = Math.max(1, one(1, 3, 10, 300, largest));
  const limit = next() < 0.03 ? 0 : whole(1, Math.min(most, largest));
  const burst = whole(1, Math.min(one(1, 5, 300, largest), largest));
  return { limit, windowMs, burst, maxDelayMs: one(Infinity, Infinity, 0, whole(0, 3_000)) };
}

/** How far the clock moves, near the edges of whatever window there is: also back, and by more than a minute. */
function moveOf({ whole, one, next }: Random, windowMs: number): number {
  if (next() < 0.3) return 0;
  if (next() < 0.06) return one(-60_001, -60_000, 60_001, whole(-10_000_000, 10_000_000));
  return Math.trunc(windowMs * one(0, 0, 0.25, 1, 2, -0.5, next(), next() / 10)) + whole(-2, 3);
}

interface Compared {
  readonly steps: number;
  /** Where both went apart first: the step, and the numbers of both. */
  readonly difference: string | undefined;
}

/** Runs one sequence through both, and compares all numbers bit by bit. */
async function compare(algorithm: Algorithm, seed: number): Promise<Compared> {
  const random = seeded(seed);
  const subject = new AlgorithmSubject(algorithm);
  const input = new NumberPacker();
  const expected: number[] = [];
  const stepOf: number[] = [];
  const receipts: Receipt[] = [];
  const isLog = algorithm.shape === 'log';
  let quota = quotaOf(random, isLog);
  let now = 1_700_000_000_000 + random.whole(0, 100_000_000);
  for (let step = 0; step < STEPS; step++) {
    if (random.next() < 0.06) quota = quotaOf(random, isLog);
    now = Math.max(0, now + moveOf(random, quota.windowMs));
    const kind = random.next() < 0.8 || receipts.length === 0 ? 0 : random.one(1, 1, 2);
    let cost = Math.max(
      1,
      Math.round(algorithm.capacity(quota) * random.one(0, 0, 0.1, 0.5, 1, 1.1, random.next())),
    );
    if (kind === 0 && random.next() < 0.05) cost = 0;
    const receipt = kind === 1 ? random.one(receipts.at(-1)!, random.one(...receipts)) : undefined;
    if (receipt !== undefined) cost = receipt.cost;
    const { limit, windowMs, burst, maxDelayMs } = quota;
    for (const number of [now, cost, kind, limit, windowMs, burst, maxDelayMs]) input.put(number);
    for (const field of ['limit', 'windowMs', 'chargedAt', 'mark'] as const) input.put(receipt?.[field] ?? 0);
    if (kind === 0) {
      const outcome = subject.step(quota, now, cost);
      const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs } = outcome;
      const { chargedAt, mark } = outcome.receipt;
      expected.push(Number(allowed), remaining, retryAfterMs, resetAfterMs, delayMs, chargedAt, mark);
      if (allowed) receipts.push(outcome.receipt);
    } else {
      subject.refund(quota, now, cost, receipt ?? null);
    }
    if (isLog) expected.push(subject.state.length);
    expected.push(...subject.state);
    stepOf.push(expected.length);
  }
  const source = 'local held = false\n' + LUA_SCOPE + LUA_LOG + luaOf([algorithm]) + RUN;
  const key = `lua-twins-${process.pid}:${algorithm.name}:${seed}`;
  const reply = await redis.client.callBuffer('EVAL', source, 1, key, input.take());
  const wanted = Buffer.from(new Float64Array(expected).buffer);
  const got = reply as Buffer;
  if (got.equals(wanted)) return { steps: STEPS, difference: undefined };
  const at = expected.findIndex(
    (_, i) => !got.subarray(8 * i, 8 * i + 8).equals(wanted.subarray(8 * i, 8 * i + 8)),
  );
  const step = stepOf.findIndex((end) => at < end);
  const theirs = at * 8 < got.length ? got.readDoubleLE(at * 8) : undefined;
  return { steps: STEPS, difference: `seed ${seed}, step ${step}: ${expected[at]} here, ${theirs} in Redis` };
}

async function firstDifference(algorithm: Algorithm, sequences: number): Promise<Compared> {
  let steps = 0;
  for (let from = 0; from < sequences; from += 20) {
    const seeds = Array.from({ length: Math.min(20, sequences - from) }, (_, i) => from + i);
    const compared = await Promise.all(seeds.map((seed) => compare(algorithm, seed)));
    steps += compared.reduce((sum, each) => sum + each.steps, 0);
    const different = compared.find(({ difference }) => difference !== undefined);
    if (different !== undefined) return { steps, difference: different.difference };
  }
  return { steps, difference: undefined };
}

describe('random sequences come to the same outcome and the same state, to the bit', () => {
  it.each(Object.values<Algorithm>(ALGORITHMS).map((algorithm) => [algorithm.name, algorithm] as const))(
    '%s',
    async (_name, algorithm) => {
      expect(await firstDifference(algorithm, SEQUENCES)).toEqual({
        steps: SEQUENCES * STEPS,
        difference: undefined,
      });
    },
    60_000,
  );

  it('are 200,000 steps and more', () => {
    expect(Object.keys(ALGORITHMS).length * SEQUENCES * STEPS).toBeGreaterThanOrEqual(200_000);
  });
});

describe('a planted fault is found', () => {
  it.each([
    ['token-bucket', 'after <= capacity', 'after < capacity'],
    ['token-bucket', 'r[USED] = used\n', 'r[USED] = tonumber(tostring(used))\n'],
    ['token-bucket', 'used = max(0, used - elapsed * limit)', 'used = used - elapsed * limit'],
    ['token-bucket', 'ceil((used * window) / counted)', 'floor((used * window) / counted)'],
    ['leaky-bucket', 'delay <= maxDelayMs', 'delay < maxDelayMs'],
    ['fixed-window', 't < start + r[WINDOW]', 't <= start + r[WINDOW]'],
    ['fixed-window', 'receipt.mark == start and ', ''],
    ['sliding-window-counter', 't >= start + 2 * stored', 't > start + 2 * stored'],
    ['sliding-window-counter', 'ceil((previous', 'floor((previous'],
    ['sliding-window-log', '<= upTo', '< upTo'],
    ['sliding-window-log', 'log:time(i) > oldest', 'log:time(i) >= oldest'],
  ] as const)('%s: %j as %j', async (name, right, wrong) => {
    const algorithm: Algorithm = ALGORITHMS[name];
    expect(algorithm.lua).toContain(right);
    const faulty = { ...algorithm, lua: algorithm.lua!.replaceAll(right, wrong) };
    expect((await firstDifference(faulty, SEQUENCES)).difference).toBeDefined();
  });
});
