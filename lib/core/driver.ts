import type { Quota, Receipt } from './algorithm.js';
import type { MaybePromise } from './maybe-promise.js';
import type { Policy } from './policy.js';
import type { ServedBy } from './verdict.js';

export type { MaybePromise } from './maybe-promise.js';

/** The counter of one subject under one policy. */
export interface Counter {
  readonly policy: Policy;
  /** The policy's own numbers, or what a resolver gave for this subject. */
  readonly quota: Quota;
  /** At most 200 characters, free of raw identifiers where the module hashes keys. */
  readonly subject: string;
}

/** One counter to be charged. */
export interface Charge extends Counter {
  /** Whole units ≥ 1. */
  readonly cost: number;
}

/** What a driver answers to one charge of a group. */
export interface Decision {
  /** Whether this counter alone would admit the charge, whatever the policy's mode. */
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly servedBy: ServedBy;
  /** What gives the charge back; `undefined` when nothing was taken. */
  readonly receipt: Receipt | undefined;
  /** The policy's `onUnavailable` has answered, because the store could not. */
  readonly storeFailed?: boolean;
}

/** What a driver reports of itself. */
export interface DriverStatus {
  readonly driver: string;
  readonly breaker: 'closed' | 'open' | 'half-open' | 'recovering' | null;
  /** How many instances share the limits, where the driver knows. */
  readonly fleetSize: number | null;
  /** Counters and blocks held in this process. */
  readonly keys: number;
  /** Counters that made room for others before they had expired. */
  readonly evictions: number;
  /** Why the store can't be asked, or what became of what it was last asked; `null` once it has answered again. */
  readonly lastError: string | null;
}

/**
 * Where counters live. It owns keys, loading, saving, expiry and time; the arithmetic is the algorithm's.
 *
 * A denial is returned. A rejected promise or an exception means that the store could not answer, and each
 * policy's `onUnavailable` decides what becomes of the call.
 */
export interface Driver {
  readonly name: string;
  /**
   * Decides charges together: all are taken, or none is. A counter of a policy in shadow mode never stops the
   * others, and is charged only where it would have admitted the charge itself. A subject that is blocked is
   * denied; an enforced policy with `blockMs` that itself denied starts a block. One decision a charge, in order.
   * Of a denied group, those that would have been admitted report what is left without the charge.
   *
   * A counter may come more than once, and each time with another quota or another `blockMs`: count by what the
   * charge says. A caller that will not wait comes with `maxDelayMs` 0 (or its patience) in the quota and `blockMs` 0
   * in the policy, since having to wait is no offence.
   */
  decide(group: readonly Charge[]): MaybePromise<readonly Decision[]>;
  /** What a charge of 1 would be answered; `remaining` and `resetAfterMs` without that charge. */
  peek(counter: Counter): MaybePromise<Decision>;
  /** Gives a charge back, as far as it still counts. */
  refund(counter: Counter, receipt: Receipt): MaybePromise<void>;
  /** Gives `cost` of the current window back, never below nothing used. */
  giveBack(counter: Counter, cost: number): MaybePromise<void>;
  /** Forgets what was used, and lifts a block. */
  reset(counter: Counter): MaybePromise<void>;
  block(counter: Counter, durationMs: number): MaybePromise<void>;
  unblock(counter: Counter): MaybePromise<void>;
  status(): DriverStatus;
  close(): Promise<void>;
  /**
   * Start-up waits for it, where there is one: for a connection, for example, and no longer than a start may take. It
   * rejects where the driver can never work.
   */
  readonly started?: Promise<void>;
  /** Drivers that can decide without waiting offer this. */
  readonly synchronous?: SynchronousDriver;
}

/** Decisions without a promise and, for {@link tryTake}, without an allocation. */
export interface SynchronousDriver {
  /** As {@link Driver.decide}, for one charge, at a time that may be a few uses or one event-loop turn old. */
  decideOne(charge: Charge): Decision;
  /** True where the charge was taken and nothing has to wait. */
  tryTake(policy: Policy, quota: Quota, subject: string, cost: number): boolean;
}
