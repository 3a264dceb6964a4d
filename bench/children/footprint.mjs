// A process of its own, with --expose-gc: `footprint.mjs <keys>`. Tells how many bytes a key takes, all told, and how
// long the longest turn was that the engine held while keys went in and while they expired.
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { buildLimiter } from '../support/contestants.mjs';
import { keyText } from '../support/keys.mjs';

const count = Number(process.argv[2]);
const INSERTS_PER_TURN = 200;

function held() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function bytesPerKey() {
  const before = held();
  const limiter = buildLimiter('token-bucket');
  for (let i = 0; i < count; i++) limiter.tryAcquireSync(keyText(i));
  const bytes = (held() - before) / count;
  await limiter.close();
  return bytes;
}

/** Longest turns, in milliseconds: of the insertions, and of the sweeps that remove everything again. */
async function pauses() {
  const limiter = buildLimiter('fixed-window', { windowMs: 3_000, sweepIntervalMs: 500 });
  let inserting = 0;
  for (let i = 0; i < 2 * count;) {
    const start = performance.now();
    for (const end = i + INSERTS_PER_TURN; i < end; i++) limiter.tryAcquireSync(keyText(i));
    inserting = Math.max(inserting, performance.now() - start);
    await turn();
  }
  let expiring = 0;
  let last = performance.now();
  const deadline = last + 30_000;
  while (limiter.status().keys > 0 && last < deadline) {
    await turn();
    const now = performance.now();
    expiring = Math.max(expiring, now - last);
    last = now;
  }
  const left = limiter.status().keys;
  await limiter.close();
  return { inserting, expiring, left };
}

const bytes = await bytesPerKey();
await pause(10);
process.send({ bytes, ...(await pauses()) });
