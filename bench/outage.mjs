// What a fleet lets through while Redis is away: four processes share one limit, and Redis is killed, started again
// without its data, and frozen. This library's hybrid driver, and rate-limiter-flexible with its insurance limiter.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FLEET_LIMITERS } from './support/fleet-limiters.mjs';
import { canStartServers, openFragileRedis, versionOf } from './support/redis-server.mjs';
import { parseArguments, writeJson } from './support/report.mjs';

const MEMBER = fileURLToPath(new URL('children/fleet-member.mjs', import.meta.url));
const options = parseArguments();
const { quick } = options;
const TIMELINE = quick
  ? { killed: 1, restarted: 2, frozen: 3, thawed: 4, seconds: 5 }
  : { killed: 5, restarted: 10, frozen: 28, thawed: 31, seconds: 45 };
const { seconds } = TIMELINE;
/** Calls of each process a second, for each subject: alone it could use the whole limit. */
const PLAN = { instances: 4, limit: 100, windowMs: 1_000, subjects: 4, callsPerSecond: 150, seconds };
/** Traffic and faults come so long after a second has begun: bins are seconds, and no window begins on their edges. */
const DELAY_MS = 300;

async function runFleet(name) {
  const redis = await openFragileRedis();
  const args = [name, redis.url, JSON.stringify(PLAN)];
  const members = Array.from({ length: PLAN.instances }, () => fork(MEMBER, args));
  const answers = async () =>
    (await Promise.all(members.map((member) => once(member, 'message')))).map(([answer]) => answer);
  try {
    await answers();
    const start = Math.ceil(Date.now() / 1_000 + 0.5) * 1_000;
    const reports = answers();
    for (const member of members) member.send({ start, delayMs: DELAY_MS });
    const at = (second) => sleep(start + second * 1_000 + DELAY_MS - Date.now());
    await at(TIMELINE.killed);
    redis.kill();
    await at(TIMELINE.restarted);
    await redis.restart();
    await at(TIMELINE.frozen);
    redis.freeze();
    await at(TIMELINE.thawed);
    redis.thaw();
    return summary(await reports);
  } finally {
    for (const member of members) member.kill('SIGKILL');
    redis.stop();
  }
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const percentile99 = (sorted) => sorted[Math.floor(sorted.length * 0.99)] ?? 0;

/** By second: what a subject was let through, on average and at most, by the whole fleet; errors; how long calls took. */
function summary(reports) {
  const bySecond = Array.from({ length: seconds }, (_, second) => {
    const admitted = Array.from({ length: PLAN.subjects }, (_, subject) =>
      sum(reports.map((report) => report.admitted[second][subject])),
    );
    const times = reports.flatMap((report) => report.times[second]).toSorted((a, b) => a - b);
    return {
      admitted: sum(admitted) / PLAN.subjects,
      most: Math.max(...admitted),
      errors: sum(reports.map((report) => report.errors[second])),
      p99Ms: percentile99(times),
    };
  });
  return { bySecond, unanswered: sum(reports.map(({ unanswered }) => unanswered)) };
}

/** Of the seconds from one to another: the most in one of them, all together as a multiple of the limit, and times. */
function figures({ bySecond }, from, to) {
  const part = bySecond.slice(from, to);
  return {
    'limits/s': Number((sum(part.map(({ admitted }) => admitted)) / part.length / PLAN.limit).toFixed(2)),
    'most in 1 s': Math.max(...part.map(({ most }) => most)),
    errors: sum(part.map(({ errors }) => errors)),
    'p99 ms': Math.max(...part.map(({ p99Ms }) => p99Ms)),
  };
}

/** Each is a part of the timeline, from the second in which it begins. */
const PARTS = {
  'Redis is well': [0, TIMELINE.killed],
  'Redis is killed': [TIMELINE.killed, TIMELINE.restarted],
  'Redis is back, empty': [TIMELINE.restarted, TIMELINE.frozen],
  'Redis is frozen': [TIMELINE.frozen, TIMELINE.thawed],
  'Redis goes on': [TIMELINE.thawed, seconds],
};

if (canStartServers()) {
  const results = {};
  const redis = await openFragileRedis();
  const version = await versionOf(redis.url);
  redis.stop();
  for (const name of Object.keys(FLEET_LIMITERS)) {
    const fleet = await runFleet(name);
    const parts = Object.fromEntries(
      Object.entries(PARTS).map(([part, [from, to]]) => [part, figures(fleet, from, to)]),
    );
    results[name] = { ...fleet, parts };
    console.log(
      `\n${name}: ${PLAN.instances} processes share a limit of ${PLAN.limit} a second` +
        (fleet.unanswered > 0 ? `; ${fleet.unanswered} calls had no answer` : ''),
    );
    console.table(parts);
  }
  await writeJson(options, 'outage', { redis: version, timeline: TIMELINE, plan: PLAN, results });
} else {
  console.log('No outage was measured: there is no redis-server on the PATH.');
}
