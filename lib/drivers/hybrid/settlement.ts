import type { Clock } from '../../core/clock.js';
import type { Counter } from '../../core/driver.js';
import type { RedisDriver } from '../redis/redis-driver.js';
import { startBackgroundTimer } from '../../core/background-timer.js';
import type { FleetUsage, Remembered } from './fleet-usage.js';
import type { OutageLedger, Payment } from './outage-ledger.js';
import type { Reconciliation } from './reconciliation.js';

/** How many counters are settled at once: one command's work. */
const COUNTERS_AT_ONCE = 100;
/** The pause between commands, in milliseconds, and by how much it may be longer: Redis has others to serve. */
const PAUSE_MS = 5;
const PAUSE_JITTER_MS = 20;

/** In place of a data set's number: some of what it has to be reminded of did not get through. */
const NEVER_REMINDED = -1;

export interface SettlementOptions {
  readonly redis: RedisDriver;
  readonly usage: FleetUsage;
  readonly ledger: OutageLedger;
  readonly reconciliation: Reconciliation;
  readonly clock: Clock;
  /** Which data set Redis has now. */
  readonly dataSet: () => number;
  /** Whether Redis may be asked. */
  readonly isReachable: () => boolean;
  /** Told why a counter could not be settled; true where Redis can't be reached, and it is worth another try. */
  readonly failed: (error: unknown) => boolean;
  /** Called when there was something to do, and all of it is done. */
  readonly onSettled: () => void;
}

/**
 * Brings Redis up to date: charges it with what was let through without it, and reminds it of what it knew, should it
 * have lost that. Little by little, the longest windows first.
 */
export class Settlement {
  readonly #options: SettlementOptions;
  #payments: Payment[] = [];
  /** What a new data set has to be reminded of, while that goes on. */
  #reminders: Iterator<Remembered> | undefined;
  #remindedDataSet = 0;
  #cancelPause: (() => void) | undefined;
  #running = false;
  #isWanted = false;

  constructor(options: SettlementOptions) {
    this.#options = options;
  }

  /** Whether Redis may have less than is remembered here. */
  get reminds(): boolean {
    return this.#remindedDataSet !== this.#options.dataSet();
  }

  get isDone(): boolean {
    return !this.#running && this.#cancelPause === undefined && this.#payments.length === 0 && !this.reminds;
  }

  /** Begins as soon as possible, or after the pause. */
  start(): void {
    if (this.#running || this.#cancelPause !== undefined) return;
    void this.#run();
  }

  /** What was let through just now is charged with what else comes until then. */
  startSoon(): void {
    if (this.#running) this.#isWanted = true;
    else this.#cancelPause ??= this.#afterPause();
  }

  /** Reminds Redis of one counter at once: whatever is asked of Redis after this finds it as it was. */
  remind(counter: Counter): void {
    const known = this.#options.usage.find(counter);
    if (known === undefined || known.heldBy === this.#options.dataSet()) return;
    void this.#settle({ counter, cost: 0 });
  }

  stop(): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
  }

  #afterPause(): () => void {
    return startBackgroundTimer(
      this.#options.clock,
      () => {
        this.#cancelPause = undefined;
        void this.#run();
      },
      PAUSE_MS + Math.random() * PAUSE_JITTER_MS,
    );
  }

  async #run(): Promise<void> {
    if (!this.#options.isReachable()) return;
    this.#running = true;
    this.#isWanted = false;
    const work = this.#nextWork();
    const settled = await Promise.all(work.map((payment) => this.#settle(payment)));
    this.#running = false;
    this.#options.reconciliation.tell();
    if (settled.includes(false)) return this.#putBack();
    if (work.length > 0 || this.#isWanted) this.#cancelPause ??= this.#afterPause();
    else this.#options.onSettled();
  }

  #nextWork(): Payment[] {
    const { ledger, usage, dataSet } = this.#options;
    const now = this.#now();
    if (this.#payments.length === 0) this.#payments = ledger.draw(now);
    const work = this.#payments.splice(0, COUNTERS_AT_ONCE);
    if (!this.reminds) return work;
    this.#reminders ??= usage.unknownTo(dataSet(), now);
    while (work.length < COUNTERS_AT_ONCE) {
      const next = this.#reminders.next();
      if (next.done === true) {
        this.#reminders = undefined;
        this.#remindedDataSet = dataSet();
        break;
      }
      work.push({ counter: next.value.tally.counter, cost: 0 });
    }
    return work;
  }

  /** False where Redis could not be reached: nothing of it is lost. */
  async #settle(payment: Payment): Promise<boolean> {
    const { redis, usage, ledger, reconciliation, dataSet, failed } = this.#options;
    const { counter, cost } = payment;
    const known = usage.find(counter);
    const current = dataSet();
    const most =
      known === undefined || known.heldBy === current ? Infinity : known.tally.remaining(this.#now());
    try {
      const { remaining, now } = await redis.settle(counter, most, cost);
      known?.tally.leaveAtMost(remaining, now);
      if (known !== undefined) known.heldBy = current;
      reconciliation.charged(cost);
      return true;
    } catch (error) {
      if (!failed(error)) {
        reconciliation.dropped(cost);
        return true;
      }
      if (cost > 0) ledger.putBack(payment, this.#now());
      return false;
    }
  }

  #putBack(): void {
    const now = this.#now();
    for (const payment of this.#payments.splice(0)) this.#options.ledger.putBack(payment, now);
    this.#reminders = undefined;
    this.#remindedDataSet = NEVER_REMINDED;
  }

  #now(): number {
    return Math.floor(this.#options.clock.now());
  }
}
