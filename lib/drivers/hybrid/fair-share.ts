import type { Quota } from '../../core/algorithm.js';
import type { Counter } from '../../core/driver.js';
import { fnv1a32 } from '../memory/fnv1a.js';

/** Where an instance stands among those that share the limits. */
export interface FleetPlace {
  /** How many instances there are, this one included, ≥ 1. */
  readonly size: number;
  /** 0 ≤ rank < size; each instance has another. */
  readonly rank: number;
}

/**
 * An instance's part of an amount: the parts of all instances add up to it. What does not divide evenly goes one each to
 * the first in a turn that starts elsewhere for each subject, so that no instance is always the poorer one. No part is
 * smaller than `minShare`, or than the amount where that is less: then the parts add up to more.
 */
export function fairShare(amount: number, place: FleetPlace, subject: string, minShare: number): number {
  const { size } = place;
  const remainder = amount % size;
  const extra = remainder > 0 && turnOf(place, subject) < remainder ? 1 : 0;
  return Math.min(amount, Math.max(Math.floor(amount / size) + extra, minShare));
}

/** The place in the turn of one subject. The same hash everywhere, so that the turns of all instances differ. */
function turnOf({ size, rank }: FleetPlace, subject: string): number {
  return (rank + (fnv1a32(subject) >>> 0)) % size;
}

/** An instance's part of quotas. What was worked out is kept while the instance's place stays the same. */
export class QuotaShares {
  readonly #minShare: number;
  #place: FleetPlace | undefined;
  #shares = new WeakMap<Quota, Map<number, Quota>>();

  constructor(minShare: number) {
    this.#minShare = minShare;
  }

  of({ quota, subject }: Counter, place: FleetPlace): Quota {
    if (place !== this.#place) {
      this.#place = place;
      this.#shares = new WeakMap();
    }
    const turn = turnOf(place, subject);
    let byTurn = this.#shares.get(quota);
    if (byTurn === undefined) this.#shares.set(quota, (byTurn = new Map()));
    let share = byTurn.get(turn);
    if (share === undefined) {
      share = {
        limit: fairShare(quota.limit, place, subject, this.#minShare),
        windowMs: quota.windowMs,
        burst: fairShare(quota.burst, place, subject, this.#minShare),
        maxDelayMs: quota.maxDelayMs,
      };
      byTurn.set(turn, share);
    }
    return share;
  }
}
