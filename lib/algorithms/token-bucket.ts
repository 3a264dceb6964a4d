import { drainingBucket, lessDrained, undrained } from './draining-bucket.js';

/**
 * Token bucket: up to `burst` at once, refilled at `limit` per window.
 * In any span of one window at most `burst + limit` pass. GCRA decides the same (ITU-T I.371, annex A).
 */
export const tokenBucket = drainingBucket({
  name: 'token-bucket',
  uses: ['burst'],
  shapes: false,
  defaultBurst: (limit) => limit,
  refundable: (receipt, quota, _used, t, untouched) =>
    untouched ? undrained(receipt, quota, t) : lessDrained(receipt, quota, t),
  refundableLua: 'return untouched and undrained(receipt, quota, t) or lessDrained(receipt, quota, t)',
});
