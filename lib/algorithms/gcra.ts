import { tokenBucket } from './token-bucket.js';

/**
 * Generic cell rate algorithm (ITU-T I.371): a call conforms when its theoretical arrival time is at most
 * `burst − 1` intervals ahead. In any span of one window at most `burst + limit` pass.
 *
 * The virtual-scheduling and the bucket form of GCRA are equivalent, so the token bucket's arithmetic serves
 * both. A single stored arrival time would not survive a change of limit; a level and its time do.
 */
export const gcra = { ...tokenBucket, name: 'gcra' };
