// A process of its own: `flood.mjs <log2 of keys>`. Compares keys built to share one FNV-1a value with as many random
// ones, in drivers whose hash starts at the published basis, so that they really collide.
import { MemoryDriver } from '../../dist/esm/drivers/memory/memory-driver.js';
import { FNV_OFFSET_BASIS, fnv1a32 } from '../../dist/esm/drivers/memory/fnv1a.js';
import { limiterBuilder } from '../../dist/esm/limiter-builder.js';

const blocks = Number(process.argv[2]);

/** Two blocks that lead from `start` to the same value: a birthday among short random texts. */
function collidingPair(start) {
  const seen = new Map();
  for (let i = 0; ; i++) {
    const text = i.toString(36).padStart(6, '0');
    const hash = fnv1a32(text, start);
    const other = seen.get(hash);
    if (other !== undefined) return { pair: [other, text], hash };
    seen.set(hash, text);
  }
}

/** 2^blocks texts of one hash: one of two blocks at each place, whatever the others are. */
function craftedKeys() {
  let texts = [''];
  for (let block = 0, start = FNV_OFFSET_BASIS; block < blocks; block++) {
    const { pair, hash } = collidingPair(start);
    texts = texts.flatMap((text) => pair.map((part) => text + part));
    start = hash;
  }
  return texts;
}

async function nanosecondsPerCall(keys) {
  const driver = new MemoryDriver({ hashStart: FNV_OFFSET_BASIS });
  const limiter = limiterBuilder().limit(1_000_000).window('1h').driver(driver).build();
  const start = performance.now();
  for (let round = 0; round < 10; round++) for (const key of keys) limiter.tryAcquireSync(key);
  const ns = ((performance.now() - start) * 1e6) / (10 * keys.length);
  await driver.close();
  return ns;
}

const crafted = craftedKeys();
if (new Set(crafted.map((key) => fnv1a32(key))).size !== 1) throw new Error('the keys do not collide');
const length = crafted[0].length;
const random = crafted.map((_, i) =>
  Math.imul(i + 1, 2_654_435_761)
    .toString(36)
    .padStart(length, 'x'),
);
await nanosecondsPerCall(random);
process.send({
  keys: crafted.length,
  random: await nanosecondsPerCall(random),
  crafted: await nanosecondsPerCall(crafted),
});
