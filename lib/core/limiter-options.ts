import type { DriverStatus } from './driver.js';

/** What a running limiter says of itself. */
export type RateLimiterStatus = DriverStatus;

export interface ConsumeOptions {
  /** Whole units ≥ 1. Default: the policy's own cost where that is a number, else 1. */
  readonly cost?: number;
}

export interface AcquireOptions extends ConsumeOptions {
  /** How long to wait at most, in milliseconds. Default 30,000. */
  readonly maxWaitMs?: number;
  readonly signal?: AbortSignal;
}
