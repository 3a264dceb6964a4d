// Decisions in Redis: how many a second and how long they take, against the rivals, by the number of callers on one
// connection; Redis' own time for each; commands a turn; the same on a cluster; and what a denial costs that is
// remembered.
import 'reflect-metadata';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from 'rate-limit-redis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { limiterBuilder, RedisDriver } from 'nestjs-distlimit';
import { premadeKeys } from './support/keys.mjs';
import { canStartServers, openCluster, openRedis, versionOf } from './support/redis-server.mjs';
import { parseArguments, writeJson } from './support/report.mjs';
import { median } from './support/statistics.mjs';

const options = parseArguments();
const { quick } = options;
const CALLERS = quick ? [1, 64] : [1, 64, 256];
const PACE = quick ? { rounds: 2, chunkMs: 60 } : { rounds: 12, chunkMs: 400 };
const KEYS = 10_000;
const MASTERS = 3;
const WINDOW_MS = 3_600_000;
/** More than any run can use. */
const LIMIT = 1_000_000;
const OWN = 'nestjs-distlimit';

const keys = premadeKeys(KEYS);
const randomKey = () => keys[Math.floor(Math.random() * KEYS)];
const closers = [];

function ownLimiter(source, driver, prefix) {
  const builder = limiterBuilder(source).driver(driver).prefix(prefix).name('bench');
  const limiter = builder.algorithm('token-bucket').limit(LIMIT).window(WINDOW_MS).burst(LIMIT).build();
  closers.push(() => limiter.close());
  return limiter;
}

/** A connection as the rivals' users would set it up to be fast. */
function piped(open) {
  const client = open({ enableAutoPipelining: true });
  closers.push(() => client.disconnect());
  return client;
}

const flexibleOn = (storeClient) =>
  new RateLimiterRedis({ storeClient, points: LIMIT, duration: WINDOW_MS / 1_000 });

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

/** How often scripts ran, and how long they held Redis, since the last look: on all servers together. */
async function commandStatistics(admins) {
  const total = { commands: 0, microseconds: 0 };
  for (const admin of admins) {
    const text = await admin.info('commandstats');
    for (const [, calls, microseconds] of text.matchAll(/cmdstat_(?:eval|evalsha):calls=(\d+),usec=(\d+)/g)) {
      total.commands += Number(calls);
      total.microseconds += Number(microseconds);
    }
    await admin.config('RESETSTAT');
  }
  return total;
}

const rounded = (value, digits) => Number(value.toFixed(digits));

/** All contestants in turn, round after round, for each number of callers. */
async function compare(title, contestants, admins) {
  const results = [];
  for (const callers of CALLERS) {
    const samples = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
    for (const call of Object.values(contestants)) await chunk(call, callers, PACE.chunkMs);
    for (let round = 0; round < PACE.rounds; round++) {
      for (const [name, call] of Object.entries(contestants)) {
        await commandStatistics(admins);
        const sample = await chunk(call, callers, PACE.chunkMs);
        const { commands, microseconds } = await commandStatistics(admins);
        samples[name].push({
          ...sample,
          checks: sample.calls / commands,
          microseconds: microseconds / sample.calls,
        });
      }
    }
    const middle = (runs, field, digits) => rounded(median(runs.map((run) => run[field])), digits);
    const figures = Object.fromEntries(
      Object.entries(samples).map(([name, runs]) => [
        name,
        {
          'decisions/s': middle(runs, 'rate', 0),
          'p99 ms': middle(runs, 'p99', 2),
          'Redis µs/call': middle(runs, 'microseconds', 2),
          'calls/command': middle(runs, 'checks', 1),
        },
      ]),
    );
    const ratios = Object.fromEntries(
      Object.entries(samples)
        .filter(([name]) => name !== OWN)
        .map(([name, runs]) => {
          const ratio = (field) =>
            rounded(median(runs.map((run, round) => samples[OWN][round][field] / run[field])), 2);
          return [name, { 'decisions/s': ratio('rate'), p99: ratio('p99') }];
        }),
    );
    results.push({ callers, figures, ratios });
    console.log(`\n${title}, ${callers} callers, ${KEYS} keys, median of ${PACE.rounds} rounds`);
    console.table(figures);
    console.log(`${OWN}, as a multiple of theirs (more decisions and less p99 are better)`);
    console.table(ratios);
  }
  return results;
}

const redis = await openRedis();
const admin = new Redis(redis.url);
closers.push(() => admin.disconnect());
const own = ownLimiter(redis.url, 'redis', 'own');
const hybrid = ownLimiter(redis.url, 'hybrid', 'hybrid');
const driver = new RedisDriver({ redis: redis.url, prefix: 'group' });
closers.push(() => driver.close());
const three = ['a', 'b', 'c'].map((name) => ({ ...own.policy, name }));

const single = (options) => new Redis(redis.url, options);
const flexible = flexibleOn(piped(single));
const storeClient = piped(single);
const store = new RedisStore({ sendCommand: (...command) => storeClient.call(...command) });
await store.init({ windowMs: WINDOW_MS });
const throttler = new ThrottlerStorageRedisService(piped(single));
const plain = piped(single);

const speed = await compare(
  'One server',
  {
    [OWN]: () => own.consume(randomKey()),
    [`${OWN}, three policies`]: () => {
      const subject = randomKey();
      return driver.decide(three.map((each) => ({ policy: each, quota: each, subject, cost: 1 })));
    },
    [`${OWN}, hybrid`]: () => hybrid.consume(randomKey()),
    'rate-limiter-flexible': () => flexible.consume(randomKey()),
    'rate-limit-redis': () => store.increment(randomKey()),
    '@nest-lab/throttler-storage-redis': () =>
      throttler.increment(randomKey(), WINDOW_MS, LIMIT, 0, 'default'),
    'bare INCR': () => plain.incr(`plain:${randomKey()}`),
  },
  [admin],
);

async function compareOnCluster() {
  const cluster = await openCluster(MASTERS);
  closers.push(() => cluster.stop());
  const clustered = ({ enableAutoPipelining }) => new Cluster(cluster.nodes, { enableAutoPipelining });
  const ownClustered = ownLimiter({ nodes: cluster.nodes }, 'redis', 'own');
  const flexibleClustered = flexibleOn(piped(clustered));
  const plainClustered = piped(clustered);
  return compare(
    `A cluster of ${MASTERS} masters`,
    {
      [OWN]: () => ownClustered.consume(randomKey()),
      'rate-limiter-flexible': () => flexibleClustered.consume(randomKey()),
      'bare INCR': () => plainClustered.incr(`plain:${randomKey()}`),
    },
    cluster.clients,
  );
}

const onCluster = canStartServers() ? await compareOnCluster() : null;
if (onCluster === null) console.log('\nNo cluster was measured: there is no redis-server on the PATH.');

// A caller who keeps trying: the first denial is Redis', the others are remembered.
await own.consume('full', { cost: LIMIT });
await own.consume('full');
const denied = await chunk(() => own.consume('full'), 1, PACE.chunkMs);
const asked = await chunk(() => own.peek('full'), 1, PACE.chunkMs);
const denials = { 'remembered/s': Math.round(denied.rate), 'round trips/s': Math.round(asked.rate) };
console.log(`\nDenials: ${JSON.stringify(denials)}, ${(denied.rate / asked.rate).toFixed(1)} times as many`);

await writeJson(options, 'redis', {
  redis: await versionOf(redis.url),
  pace: PACE,
  speed,
  cluster: onCluster,
  denials,
});
for (const close of closers.toReversed()) await close();
redis.stop();
