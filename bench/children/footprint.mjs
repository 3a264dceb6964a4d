// A process of its own, with --expose-gc: `footprint.mjs <contestant> <keys> <bytes|turns>`. Tells how many bytes a key
// takes, all told, or how long the longest turns were that the engine held while keys went in and while they expired.
import { setImmediate as turn } from 'node:timers/promises';
import { openContestant } from '../support/contestants.mjs';
import { keyText } from '../support/keys.mjs';

const [name, keys, what] = process.argv.slice(2);
const count = Number(keys);
const INSERTS_PER_TURN = 200;
const WINDOW_MS = 3_000;
/** So long after a window nobody should have anything left to expire. */
const EXPIRY_MS = 7_000;

function held() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function bytesPerKey() {
  const before = held();
  const contestant = await openContestant(name);
  for (let i = 0; i < count; i++) await contestant.call(keyText(i));
  const bytes = (held() - before) / count;
  // Used once more: else nothing would hold the counters while they are measured.
  await contestant.call(keyText(0));
  return { bytes };
}

async function longestTurns() {
  const { sync, call } = await openContestant(name, WINDOW_MS);
  let inserting = 0;
  for (let i = 0; i < count;) {
    const start = performance.now();
    for (const end = i + INSERTS_PER_TURN; i < end; i++) {
      if (sync) call(keyText(i));
      else await call(keyText(i));
    }
    inserting = Math.max(inserting, performance.now() - start);
    await turn();
  }
  let expiring = 0;
  let last = performance.now();
  const deadline = last + WINDOW_MS + EXPIRY_MS;
  while (last < deadline) {
    await turn();
    const now = performance.now();
    expiring = Math.max(expiring, now - last);
    last = now;
  }
  return { inserting, expiring };
}

const answer = what === 'bytes' ? await bytesPerKey() : await longestTurns();
process.send(answer);
