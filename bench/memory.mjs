// Decisions in memory: nanoseconds a call against the rivals, allocation, bytes a key, pauses, and crafted collisions.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ALGORITHMS, METHODS, RIVAL_NAMES } from './support/contestants.mjs';
import { race } from './support/race.mjs';
import { parseArguments, writeJson } from './support/report.mjs';
import { median } from './support/statistics.mjs';

const options = parseArguments();
const { quick } = options;
const KEY_COUNTS = quick ? [1_000] : [1, 1_000, 100_000, 1_000_000];
const PACE = quick ? { rounds: 2, chunkMs: 5 } : { rounds: 15, chunkMs: 40 };

const OWN = ALGORITHMS.flatMap((algorithm) => METHODS.map((method) => `${algorithm} ${method}`));
/** The throttler keeps an entry a hit up to its limit: it is compared at a limit of 100, so is one of ours. */
const AT_100 = 'token-bucket tryAcquireSync@100';
/** What a key takes, and how long it holds the event loop, each by the contestant that shows it. */
const FOOTPRINTS = {
  // A token bucket is full again, and may go, long before its window has ended.
  'nestjs-distlimit': { bytes: 'token-bucket tryAcquireSync', turns: 'fixed-window tryAcquireSync' },
  ...Object.fromEntries(RIVAL_NAMES.map((rival) => [rival, { bytes: rival, turns: rival }])),
};

async function ask(child, ...args) {
  const started = fork(fileURLToPath(new URL(`children/${child}.mjs`, import.meta.url)), args, {
    execArgv: ['--expose-gc', '--max-old-space-size=8000'],
  });
  const [answer] = await once(started, 'message');
  started.kill();
  return answer;
}

/** Times of a rival, as a multiple of this library's in the same round. */
function timesFaster(samples, own, rival) {
  return median(samples.get(rival).map((ns, round) => ns / samples.get(own)[round]));
}

const speed = [];
for (const keys of KEY_COUNTS) {
  const names = [...RIVAL_NAMES, ...OWN, AT_100];
  const samples = await race('contestant', names, keys, PACE);
  const own = 'token-bucket tryAcquireSync';
  const nanoseconds = Object.fromEntries(names.map((name) => [name, Math.round(median(samples.get(name)))]));
  const ratios = Object.fromEntries(
    RIVAL_NAMES.map((rival) => [
      rival,
      Number(timesFaster(samples, rival === '@nestjs/throttler' ? AT_100 : own, rival).toFixed(2)),
    ]),
  );
  speed.push({ keys, nanoseconds, ratios });
  console.log(`\n${keys} keys: nanoseconds a call, median of ${PACE.rounds} rounds`);
  console.table(Object.fromEntries(names.map((name) => [name, { 'ns/call': nanoseconds[name] }])));
  console.log(`token-bucket tryAcquireSync is so many times as fast as: ${JSON.stringify(ratios)}`);
}

const calls = quick ? 1_000_000 : 10_000_000;
const steady = {};
for (const algorithm of ALGORITHMS) steady[algorithm] = await ask('steady-state', algorithm, String(calls));
console.log(`\n${calls} calls of tryAcquireSync in steady state`);
console.table(steady);

const keys = quick ? 50_000 : 1_000_000;
const footprint = {};
for (const [name, { bytes, turns }] of Object.entries(FOOTPRINTS)) {
  footprint[name] = {
    ...(await ask('footprint', bytes, String(keys), 'bytes')),
    ...(await ask('footprint', turns, String(2 * keys), 'turns')),
  };
  for (const [field, value] of Object.entries(footprint[name]))
    footprint[name][field] = Number(value.toFixed(2));
}
console.log(
  `\nBytes a key at ${keys} keys; the longest turn in ms while ${2 * keys} went in (200 a turn) and while they expired`,
);
console.table(footprint);

const flood = await ask('flood', quick ? '8' : '13');
console.log(
  `\n${flood.keys} keys that share one FNV-1a value: ${flood.crafted.toFixed(0)} ns a call, as many random ones ` +
    `${flood.random.toFixed(0)} ns: ${(flood.crafted / flood.random).toFixed(1)} times`,
);
await writeJson(options, 'memory', { pace: PACE, speed, calls, steady, footprint, flood });
