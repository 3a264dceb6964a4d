import fc from 'fast-check';
import { ALGORITHMS } from '../../lib/algorithms/index.js';
import type { Algorithm, Quota } from '../../lib/core/algorithm.js';
import { EPOCH } from './run-vectors.js';

export const EVERY_ALGORITHM: readonly [string, Algorithm][] = Object.entries(ALGORITHMS);
export const BUCKETS = ['token-bucket', 'gcra', 'leaky-bucket'] as const;

/** Always the same cases, so that a failure can be run again; few enough to end soon. */
export function check(property: fc.IProperty<never> | fc.IRawProperty<unknown>, numRuns = 300): void {
  void fc.assert(property as fc.IRawProperty<unknown>, { seed: 0x6c696d69, numRuns });
}

/** Quotas of everyday size. */
export const quotas: fc.Arbitrary<Quota> = fc.record({
  limit: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 300 })),
  windowMs: fc.oneof(
    fc.integer({ min: 1, max: 20 }),
    fc.integer({ min: 1, max: 5_000 }),
    fc.constantFrom(1_000, 60_000, 3_600_000, 86_400_000),
  ),
  burst: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 300 })),
  maxDelayMs: fc.oneof(fc.constant(Infinity), fc.integer({ min: 0, max: 3_000 })),
});

/** A quota, or one that admits nothing. */
export const quotasWithNone: fc.Arbitrary<Quota> = fc.oneof(
  { weight: 9, arbitrary: quotas },
  { weight: 1, arbitrary: quotas.map((quota) => ({ ...quota, limit: 0 })) },
);

/** The largest that are accepted: 2 × max(limit, burst) × window just below 2^53. */
export const hugeQuotas: fc.Arbitrary<Quota> = fc
  .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
  .map(([scale, share, burstIsLess]) => {
    const windowMs = Math.floor(2 ** (51 * scale)) + 1;
    const most = Math.max(1, Math.floor((2 ** 52 - 1) / windowMs));
    const less = Math.max(1, Math.floor(most * share));
    return burstIsLess
      ? { limit: most, windowMs, burst: less, maxDelayMs: Infinity }
      : { limit: less, windowMs, burst: most, maxDelayMs: Infinity };
  });

/** A call, in terms of the quota it will meet, so that it comes near the edges of any. */
export interface Call {
  /** How far the clock moves: whole windows' thousandths … */
  readonly perMille: number;
  /** … and milliseconds. */
  readonly ms: number;
  /** The cost in thousandths of the capacity; at least 1. */
  readonly share: number;
}

/** Calls whose clock only moves on. */
export const calls = call(
  fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 2_500 })),
  fc.integer({ min: 0, max: 3 }),
);

/** Calls whose clock also runs backwards, and jumps by more than a minute. */
export const callsOfAnyClock = call(
  fc.oneof(fc.constant(0), fc.integer({ min: -600, max: 1_500 })),
  fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: -3, max: 3 }) },
    { weight: 2, arbitrary: fc.integer({ min: -60_002, max: 60_002 }) },
    { weight: 1, arbitrary: fc.integer({ min: -10_000_000, max: 10_000_000 }) },
  ),
);

function call(perMille: fc.Arbitrary<number>, ms: fc.Arbitrary<number>): fc.Arbitrary<Call> {
  return fc.record({
    perMille,
    ms,
    share: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 1_100 })),
  });
}

/** Where in a window things begin. */
export const starts = fc.oneof(fc.constant(EPOCH), fc.integer({ min: EPOCH, max: EPOCH + 100_000_000 }));

/** No clock shows more, so that two of the longest windows later is still a whole number. */
const LATEST = 2 ** 51;

export function later(now: number, { perMille, ms }: Call, { windowMs }: Quota): number {
  return Math.min(Math.max(0, now + Math.trunc((perMille * windowMs) / 1_000) + ms), LATEST);
}

export function costOf({ share }: Call, algorithm: Algorithm, quota: Quota): number {
  return Math.max(1, Math.round((share * algorithm.capacity(quota)) / 1_000));
}

/** What is left of a quota that nobody has used. */
export function fullOf(algorithm: Algorithm, quota: Quota): number {
  return algorithm.capacity(quota);
}

/** Calls by one quota after another. */
export const histories = (
  of: fc.Arbitrary<Quota> = quotasWithNone,
  call: fc.Arbitrary<Call> = callsOfAnyClock,
) =>
  fc.array(fc.record({ quota: of, calls: fc.array(call, { minLength: 1, maxLength: 12 }) }), {
    minLength: 1,
    maxLength: 4,
  });
