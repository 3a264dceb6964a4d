import type { Algorithm } from '../core/algorithm.js';
import type { AlgorithmName } from '../core/policy.js';
import { fixedWindow } from './fixed-window.js';
import { gcra } from './gcra.js';
import { leakyBucket } from './leaky-bucket.js';
import { slidingWindowCounter } from './sliding-window-counter.js';
import { slidingWindowLog } from './sliding-window-log.js';
import { tokenBucket } from './token-bucket.js';

/** The built-in algorithms by name. */
export const ALGORITHMS = {
  'sliding-window-counter': slidingWindowCounter,
  'sliding-window-log': slidingWindowLog,
  'fixed-window': fixedWindow,
  'token-bucket': tokenBucket,
  'leaky-bucket': leakyBucket,
  gcra,
} as const satisfies Record<AlgorithmName, Algorithm>;

export { fixedWindow, gcra, leakyBucket, slidingWindowCounter, slidingWindowLog, tokenBucket };
