// A process of its own: `steady-state.mjs <algorithm> <calls>`. Tells how often the collector ran while nothing but
// tryAcquireSync was called, and how many bytes the heap grew by a call.
import { PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { buildLimiter } from '../support/contestants.mjs';
import { premadeKeys } from '../support/keys.mjs';

const [algorithm, calls] = process.argv.slice(2);
const limiter = buildLimiter(algorithm);
const keys = premadeKeys(1_000);

function run(times) {
  for (let i = 0; i < times; i++) limiter.tryAcquireSync(keys[i % 1_000]);
}

run(2_000_000);
let collections = 0;
new PerformanceObserver((list) => (collections += list.getEntries().length)).observe({ entryTypes: ['gc'] });
await pause(50);
collections = 0;
const before = process.memoryUsage().heapUsed;
run(Number(calls));
const grown = process.memoryUsage().heapUsed - before;
await pause(50);
process.send({ collections, bytesPerCall: grown / Number(calls) });
await limiter.close();
