import type { AlgorithmName } from '../../lib/core/policy.js';
import type { Scenario } from '../support/run-vectors.js';
import { fixedWindow } from './fixed-window.js';
import { gcra } from './gcra.js';
import { leakyBucket } from './leaky-bucket.js';
import { slidingWindowCounter } from './sliding-window-counter.js';
import { slidingWindowLog } from './sliding-window-log.js';
import { tokenBucket } from './token-bucket.js';

/** Vectors by the algorithm's name. */
export const VECTORS: Readonly<Record<AlgorithmName, readonly Scenario[]>> = {
  'fixed-window': fixedWindow,
  'sliding-window-counter': slidingWindowCounter,
  'sliding-window-log': slidingWindowLog,
  'token-bucket': tokenBucket,
  gcra,
  'leaky-bucket': leakyBucket,
};
