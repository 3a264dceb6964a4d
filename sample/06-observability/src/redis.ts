export { redisForSample, type RedisForSample } from '../../support/redis-for-samples.js';

/** Injects where the sample counts. */
export const REDIS = Symbol('redis for the sample');
