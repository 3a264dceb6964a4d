import { createRequire } from 'node:module';
import { limiterBuilder } from '../../dist/esm/limiter-builder.js';

const require = createRequire(import.meta.url);

const WINDOW_MS = 3_600_000;
/** So high that nothing is denied: a denial is cheap here and dear for some rivals. */
const OPEN_LIMIT = 1_000_000_000;
/** Where the cost of a call grows with the limit: @nestjs/throttler and the log, which keep an entry a call. */
const LOW_LIMIT = 100;

export const ALGORITHMS = [
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-log',
  'token-bucket',
  'leaky-bucket',
  'gcra',
];

export const METHODS = ['tryAcquireSync', 'consumeSync', 'consume'];

/** What the rivals offer. Each is called as its own middleware or guard calls it, and awaited where that waits. */
const RIVALS = {
  'bare Map': async (windowMs) => {
    const counters = new Map();
    return {
      sync: true,
      call(key) {
        const now = Date.now();
        const counter = counters.get(key);
        if (counter === undefined || counter.reset <= now) {
          counters.set(key, { count: 1, reset: now + windowMs });
          return true;
        }
        return ++counter.count <= OPEN_LIMIT;
      },
    };
  },
  'rate-limiter-flexible': async (windowMs) => {
    const { RateLimiterMemory } = require('rate-limiter-flexible');
    const limiter = new RateLimiterMemory({ points: OPEN_LIMIT, duration: windowMs / 1000 });
    return { sync: false, call: (key) => limiter.consume(key) };
  },
  'express-rate-limit': async (windowMs) => {
    const { MemoryStore } = await import('express-rate-limit');
    const store = new MemoryStore();
    store.init({ windowMs });
    return { sync: false, call: (key) => store.increment(key) };
  },
  '@nestjs/throttler': async (windowMs) => {
    require('reflect-metadata');
    const { ThrottlerStorageService } = require('@nestjs/throttler');
    const storage = new ThrottlerStorageService();
    return { sync: false, call: (key) => storage.increment(key, windowMs, LOW_LIMIT, 0, 'default') };
  },
};

export const RIVAL_NAMES = Object.keys(RIVALS);

/** A limiter of this library. Its time is real: a clock that is given is read on every call. */
export function buildLimiter(algorithm, options = {}) {
  const limit = options.limit ?? (algorithm === 'sliding-window-log' ? LOW_LIMIT : OPEN_LIMIT);
  const builder = limiterBuilder()
    .algorithm(algorithm)
    .limit(limit)
    .window(options.windowMs ?? WINDOW_MS)
    .memory({ maxKeys: options.maxKeys ?? 10_000_000, sweepIntervalMs: options.sweepIntervalMs ?? 1_000 });
  // By default the leaky bucket holds one second's worth, and would deny most of what a benchmark sends.
  if (algorithm === 'leaky-bucket') builder.burst(limit);
  return builder.build();
}

/** One contestant by its name: a rival's, or `<algorithm> <method>`, with `@<limit>` for a limit of its own. */
export async function openContestant(name, windowMs = WINDOW_MS) {
  if (RIVALS[name] !== undefined) return RIVALS[name](windowMs);
  const [what, limit] = name.split('@');
  const [algorithm, method] = what.split(' ');
  const limiter = buildLimiter(algorithm, {
    limit: limit === undefined ? undefined : Number(limit),
    windowMs,
  });
  return { sync: method !== 'consume', call: SHORTEST[method](limiter) };
}

/** Written out, since a call by a computed name is slower than the call it measures. */
const SHORTEST = {
  tryAcquireSync: (limiter) => (key) => limiter.tryAcquireSync(key),
  consumeSync: (limiter) => (key) => limiter.consumeSync(key),
  consume: (limiter) => (key) => limiter.consume(key),
};
