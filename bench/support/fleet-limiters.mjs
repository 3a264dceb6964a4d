import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { limiterBuilder } from '../../dist/esm/limiter-builder.js';

const require = createRequire(import.meta.url);

/** rate-limiter-flexible as its documentation sets it up for outages, and with further options for ioredis. */
async function flexible(url, { limit, windowMs }, options = {}) {
  const { RateLimiterMemory, RateLimiterRedis } = require('rate-limiter-flexible');
  const storeClient = new Redis(url, { enableOfflineQueue: false, ...options });
  storeClient.on('error', () => {});
  if (storeClient.status !== 'ready') await new Promise((resolve) => storeClient.once('ready', resolve));
  const quota = { points: limit, duration: windowMs / 1_000 };
  const limiter = new RateLimiterRedis({
    storeClient,
    ...quota,
    insuranceLimiter: new RateLimiterMemory(quota),
  });
  return async (subject) => {
    try {
      await limiter.consume(subject);
      return true;
    } catch (denialOrError) {
      if (denialOrError instanceof Error) throw denialOrError;
      return false;
    }
  };
}

/** What decides in each process of a fleet: opens it, and resolves when the fleet is as it is in good times. */
export const FLEET_LIMITERS = {
  'nestjs-distlimit, hybrid': async (url, { limit, windowMs, instances }) => {
    const limiter = limiterBuilder(url).algorithm('fixed-window').limit(limit).window(windowMs).build();
    while (limiter.status().fleetSize !== instances) await sleep(50);
    return async (subject) => (await limiter.consume(subject)).allowed;
  },
  'rate-limiter-flexible, insured': (url, plan) => flexible(url, plan),
  'rate-limiter-flexible, insured, 100 ms timeout': (url, plan) =>
    flexible(url, plan, { commandTimeout: 100 }),
};
