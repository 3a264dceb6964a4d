// Decisions in Redis: how many a second and how long they take, against the rivals, by the number of callers on one
// connection; Redis' own time for each; commands a turn; and what a denial costs that is remembered.
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { limiterBuilder, RedisDriver } from 'nestjs-distlimit';
import { premadeKeys } from './support/keys.mjs';
import { openRedis } from './support/redis-server.mjs';
import { machine, parseArguments, writeJson } from './support/report.mjs';
import { median } from './support/statistics.mjs';

const { quick, json } = parseArguments();
const CALLERS = quick ? [1, 64] : [1, 64, 256];
const PACE = quick ? { rounds: 2, chunkMs: 60 } : { rounds: 12, chunkMs: 400 };
const KEYS = 10_000;
/** More than any run can use. */
const LIMIT = 1_000_000;
const OWN = 'nestjs-distlimit';

const redis = await openRedis();
const admin = new Redis(redis.url);
const keys = premadeKeys(KEYS);
const randomKey = () => keys[Math.floor(Math.random() * KEYS)];

const limiter = limiterBuilder(redis.url).driver('redis').prefix('own').name('bench');
const own = limiter.algorithm('token-bucket').limit(LIMIT).window('1h').burst(LIMIT).build();
const driver = new RedisDriver({ redis: redis.url, prefix: 'group' });
const piped = () => new Redis(redis.url, { enableAutoPipelining: true });
const [flexibleClient, plainClient] = [piped(), piped()];
const flexible = new RateLimiterRedis({ storeClient: flexibleClient, points: LIMIT, duration: 3_600 });
const { policy } = own;
const three = ['a', 'b', 'c'].map((name) => ({ ...policy, name }));

const contestants = {
  [OWN]: () => own.consume(randomKey()),
  [`${OWN}, three policies`]: () => {
    const subject = randomKey();
    return driver.decide(three.map((each) => ({ policy: each, quota: each, subject, cost: 1 })));
  },
  'rate-limiter-flexible': () => flexible.consume(randomKey()),
  'bare INCR': () => plainClient.incr(`plain:${randomKey()}`),
};

/** Lets so many callers call one after the other, each as often as it can. */
async function chunk(call, callers, ms) {
  const times = [];
  const start = performance.now();
  const caller = async () => {
    while (performance.now() - start < ms) {
      const before = performance.now();
      await call();
      times.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - start) / 1_000;
  const p99 = times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)];
  return { rate: times.length / seconds, p99, calls: times.length };
}

/** How often a command ran, and how long it held Redis, since the last look. */
async function commandStatistics() {
  const found = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await admin.info('commandstats'));
  await admin.config('RESETSTAT');
  return { commands: Number(found?.[1] ?? 0), microseconds: Number(found?.[2] ?? 0) };
}

const speed = [];
for (const callers of CALLERS) {
  const samples = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
  for (const call of Object.values(contestants)) await chunk(call, callers, PACE.chunkMs);
  for (let round = 0; round < PACE.rounds; round++) {
    for (const [name, call] of Object.entries(contestants)) {
      await commandStatistics();
      const sample = await chunk(call, callers, PACE.chunkMs);
      const { commands, microseconds } = await commandStatistics();
      samples[name].push({
        ...sample,
        checks: sample.calls / commands,
        microseconds: microseconds / sample.calls,
      });
    }
  }
  const figures = Object.fromEntries(
    Object.entries(samples).map(([name, runs]) => [
      name,
      {
        'decisions/s': Math.round(median(runs.map(({ rate }) => rate))),
        'p99 ms': Number(median(runs.map(({ p99 }) => p99)).toFixed(2)),
        'Redis µs/call': Number(median(runs.map(({ microseconds }) => microseconds)).toFixed(2)),
        'calls/command': Number(median(runs.map(({ checks }) => checks)).toFixed(1)),
      },
    ]),
  );
  const ratios = Object.fromEntries(
    Object.entries(samples)
      .filter(([name]) => name !== OWN)
      .map(([name, runs]) => [
        name,
        Number(median(runs.map(({ rate }, round) => samples[OWN][round].rate / rate)).toFixed(2)),
      ]),
  );
  speed.push({ callers, figures, ratios });
  console.log(`\n${callers} callers on one connection, ${KEYS} keys, median of ${PACE.rounds} rounds`);
  console.table(figures);
  console.log(`decisions a second, as a multiple of theirs: ${JSON.stringify(ratios)}`);
}

// A caller who keeps trying: the first denial is Redis', the others are remembered.
await own.consume('full', { cost: LIMIT });
await own.consume('full');
const denied = await chunk(() => own.consume('full'), 1, PACE.chunkMs);
const asked = await chunk(() => own.peek('full'), 1, PACE.chunkMs);
const denials = { 'remembered/s': Math.round(denied.rate), 'round trips/s': Math.round(asked.rate) };
console.log(`\nDenials: ${JSON.stringify(denials)}, ${(denied.rate / asked.rate).toFixed(1)} times as many`);

writeJson(json, { benchmark: 'redis', machine: machine(), pace: PACE, speed, denials });
await Promise.all([own.close(), driver.close()]);
for (const client of [admin, flexibleClient, plainClient]) client.disconnect();
redis.stop();
