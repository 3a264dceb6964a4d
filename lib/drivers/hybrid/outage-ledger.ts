import type { Counter } from '../../core/driver.js';
import { CounterMap } from './counter-map.js';
import { Tally } from './tally.js';

/** What was let through of one counter without Redis. */
interface Account {
  /** What Redis has not been told of yet; older parts of it stop counting by themselves. */
  unpaid: Tally;
  /** All of that, what has stopped counting included. */
  booked: number;
  /** Until when the counter stays with the local share, in the store's milliseconds. */
  localUntil: number;
  /** Admissions up to this number have been charged to Redis, or are being charged. */
  paidThrough: number;
}

/** One counter's part of the bill. */
export interface Payment {
  readonly counter: Counter;
  readonly cost: number;
}

/**
 * What this instance let through without Redis, and which counters it goes on deciding by itself until their window
 * ends.
 */
export class OutageLedger {
  readonly #accounts: CounterMap<Account>;
  readonly #unpaid = new Set<Account>();
  readonly #onDropped: (cost: number) => void;
  #admissions = 0;

  /** @param onDropped told of what will never be on a bill, in units of cost */
  constructor(maxEntries: number, onDropped: (cost: number) => void = () => {}) {
    this.#onDropped = onDropped;
    this.#accounts = new CounterMap(maxEntries, (account) => this.#close(account));
  }

  get size(): number {
    return this.#accounts.size;
  }

  /** Whether the counter was served locally in its current window. */
  isLocal(counter: Counter, now: number): boolean {
    const account = this.#accounts.get(counter);
    return account !== undefined && account.localUntil > now;
  }

  /** Books what was let through; returns the admission's number. */
  book(counter: Counter, cost: number, now: number): number {
    const account = this.#accountOf(counter);
    if (!account.unpaid.follows(counter)) {
      this.#drop(account, 0);
      account.unpaid = new Tally(counter);
    }
    account.unpaid.add(cost, now);
    account.booked += cost;
    account.localUntil = endOfWindow(counter, now);
    this.#unpaid.add(account);
    return ++this.#admissions;
  }

  /** Takes an admission back; false where Redis has been charged with it, or may have been. */
  cancel(counter: Counter, admission: number, cost: number, now: number): boolean {
    const account = this.#accounts.get(counter);
    if (account === undefined || admission <= account.paidThrough) return false;
    account.unpaid.giveBack(cost, now);
    account.booked = Math.max(0, account.booked - cost);
    return true;
  }

  forget(counter: Counter): void {
    const account = this.#accounts.get(counter);
    if (account === undefined) return;
    this.#unpaid.delete(account);
    this.#accounts.delete(counter);
  }

  /**
   * Draws the bill: what still counts, longest windows first, for they would be missed the longest. What was let through
   * after that goes on the next one.
   */
  draw(now: number): Payment[] {
    const payments: Payment[] = [];
    for (const account of this.#unpaid) {
      const { counter } = account.unpaid;
      const cost = account.unpaid.used(now);
      if (cost > 0) payments.push({ counter, cost });
      this.#drop(account, cost);
      account.unpaid = new Tally(counter);
      account.paidThrough = this.#admissions;
    }
    this.#unpaid.clear();
    return payments.toSorted((a, b) => b.counter.quota.windowMs - a.counter.quota.windowMs);
  }

  /** Puts a payment back that did not get through. */
  putBack({ counter, cost }: Payment, now: number): void {
    const account = this.#accountOf(counter);
    account.unpaid.add(cost, now);
    account.booked += cost;
    this.#unpaid.add(account);
  }

  /** Closes some of the accounts that say nothing any more. Called again it goes on from there. */
  sweep(now: number): void {
    this.#accounts.sweep((account) => {
      if (account.localUntil > now || account.unpaid.expiresAt > now) return false;
      this.#close(account);
      return true;
    });
  }

  clear(): void {
    for (const account of this.#unpaid) this.#drop(account, 0);
    this.#accounts.clear();
    this.#unpaid.clear();
  }

  #accountOf(counter: Counter): Account {
    let account = this.#accounts.get(counter);
    if (account === undefined) {
      account = { unpaid: new Tally(counter), booked: 0, localUntil: 0, paidThrough: this.#admissions };
      this.#accounts.set(counter, account);
    }
    return account;
  }

  #close(account: Account): void {
    this.#drop(account, 0);
    this.#unpaid.delete(account);
  }

  /** Begins a new bill. What is not on this one is on none. */
  #drop(account: Account, paid: number): void {
    const dropped = account.booked - paid;
    account.booked = 0;
    if (dropped > 0) this.#onDropped(dropped);
  }
}

/** When the window ends that the counter is in: windows of every algorithm are taken as aligned to the epoch. */
function endOfWindow({ quota: { windowMs } }: Counter, now: number): number {
  return (Math.floor(now / windowMs) + 1) * windowMs;
}
