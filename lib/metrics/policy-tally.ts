import type { DecisionEvent } from '../core/observer.js';
import type { Policy } from '../core/policy.js';

/** Where decisions are made. What a driver of somebody else's says beside these is `other`: labels must be bounded. */
export const SERVED_BY = ['memory', 'redis', 'fallback', 'deny-cache', 'other'] as const;
export const OUTCOMES = ['allowed', 'denied', 'shadow-denied'] as const;

export type OutcomeName = (typeof OUTCOMES)[number];
export type ServedByName = (typeof SERVED_BY)[number];

const OTHER = SERVED_BY.indexOf('other');
const servedByIndexes = new Map<string, number>(SERVED_BY.map((name, i) => [name, i]));
const outcomeOffsets = new Map<string, number>(OUTCOMES.map((name, i) => [name, i * SERVED_BY.length]));
/** Decisions that leave less than this part of the quota are near the limit. */
const NEAR = 0.2;

export function servedByIndex(servedBy: string): number {
  return servedByIndexes.get(servedBy) ?? OTHER;
}

/** What was decided by one algorithm on one route. */
export class DecisionCounts {
  readonly #counts = new Float64Array(OUTCOMES.length * SERVED_BY.length);

  constructor(
    readonly algorithm: string,
    readonly route: string,
  ) {}

  add(outcome: OutcomeName, servedBy: number): void {
    this.#counts[outcomeOffsets.get(outcome)! + servedBy]!++;
  }

  /** What there was any of. */
  *entries(): Generator<{ outcome: OutcomeName; servedBy: ServedByName; count: number }> {
    for (const outcome of OUTCOMES) {
      for (const [i, servedBy] of SERVED_BY.entries()) {
        const count = this.#counts[outcomeOffsets.get(outcome)! + i]!;
        if (count > 0) yield { outcome, servedBy, count };
      }
    }
  }
}

/** What was decided by one policy: plain numbers, that one decision adds to and somebody reads now and then. */
export class PolicyTally {
  /** One for each algorithm the policy has had, and each route. */
  readonly series: DecisionCounts[] = [];
  nearLimit = 0;
  version = 1;
  #latest: DecisionCounts | undefined;

  add({ verdict, policy, quota, outcome, storeFailed }: DecisionEvent, route: string): void {
    this.#seriesOf(policy, route).add(outcome, servedByIndex(verdict.servedBy));
    if (outcome !== 'allowed' || storeFailed) return;
    if (verdict.remaining < policy.arithmetic.capacity(quota) * NEAR) this.nearLimit++;
  }

  total(isCounted: (outcome: OutcomeName, servedBy: ServedByName) => boolean): number {
    let total = 0;
    for (const counts of this.series) {
      for (const { outcome, servedBy, count } of counts.entries())
        if (isCounted(outcome, servedBy)) total += count;
    }
    return total;
  }

  #seriesOf({ algorithm }: Policy, route: string): DecisionCounts {
    const latest = this.#latest;
    if (latest !== undefined && latest.algorithm === algorithm && latest.route === route) return latest;
    let found = this.series.find((counts) => counts.algorithm === algorithm && counts.route === route);
    if (found === undefined) this.series.push((found = new DecisionCounts(algorithm, route)));
    this.#latest = found;
    return found;
  }
}
