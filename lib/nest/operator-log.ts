import type { LoggerService } from '@nestjs/common';
import { messageOf, withoutPassword, type ErrorCode } from '../core/errors.js';
import type {
  BreakerChangeEvent,
  DriverErrorEvent,
  RateLimitObserver,
  ReconcileEvent,
} from '../core/observer.js';

/** How long one kind of driver error is counted before it is told again, in milliseconds. */
const QUIET_MS = 60_000;
/** Kinds that are told apart. What callers can vary must fill neither memory nor logs. */
const MAX_KINDS = 50;
const MAX_SHOWN = 300;

type Log = Required<Pick<LoggerService, 'log' | 'warn' | 'debug'>>;

interface Kind {
  toldAt: number;
  untold: number;
}

/**
 * Writes for an operator what happens to the store: a line for each change of the breaker, and one a minute for each
 * kind of error. Never one for each call.
 */
export class OperatorLog implements RateLimitObserver {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Kind>();
  /** When the breaker left `closed`. */
  #lostAt: number | undefined;
  #reconciled = 0;
  #dropped = 0;

  /** @param now milliseconds of any clock that only goes forward */
  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  breakerChange({ driver, previous, current, reason }: BreakerChangeEvent): void {
    const why = shown(reason);
    if (current === 'half-open' || previous === 'half-open') {
      if (current !== 'recovering') return this.#log.debug?.(`the driver '${driver}' is ${current}: ${why}`);
    }
    if (current === 'open') {
      this.#lostAt ??= this.#now();
      return this.#warn('RL_BREAKER_OPEN', `the driver '${driver}' decides without Redis: ${why}`);
    }
    if (current === 'recovering') {
      const lasted = this.#sinceLost();
      return this.#tell('RL_BREAKER_RECOVERING', `the driver '${driver}' asks Redis again${lasted}: ${why}`);
    }
    const settled = `Redis was charged with ${this.#reconciled} of what was let through, and ${this.#dropped} was dropped`;
    this.#tell('RL_BREAKER_CLOSED', `the driver '${driver}' is as it was${this.#sinceLost()}: ${settled}`);
    this.#lostAt = undefined;
    this.#reconciled = 0;
    this.#dropped = 0;
  }

  reconcile({ reconciled, dropped }: ReconcileEvent): void {
    this.#reconciled += reconciled;
    this.#dropped += dropped;
  }

  driverError({ driver, error }: DriverErrorEvent): void {
    const now = this.#now();
    const id = `${driver} ${kindOf(error)}`;
    const kind = this.#kinds.get(id);
    if (kind !== undefined && now - kind.toldAt < QUIET_MS) {
      kind.untold++;
      return;
    }
    if (kind === undefined && this.#kinds.size >= MAX_KINDS) return;
    const more = kind === undefined || kind.untold === 0 ? '' : ` (${kind.untold} more since the last line)`;
    this.#kinds.set(id, { toldAt: now, untold: 0 });
    this.#warn('RL_DRIVER_UNAVAILABLE', `the driver '${driver}' failed: ${shown(messageOf(error))}${more}`);
  }

  #sinceLost(): string {
    return this.#lostAt === undefined ? '' : ` after ${((this.#now() - this.#lostAt) / 1000).toFixed(1)} s`;
  }

  #warn(code: ErrorCode, message: string): void {
    this.#log.warn(`${code}: ${message}`);
  }

  #tell(code: ErrorCode, message: string): void {
    this.#log.log(`${code}: ${message}`);
  }
}

/** An error's code where it has one (`ECONNREFUSED`, `RL_…`), the first word that Redis answered, or its class. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : (/^[A-Z]{2,} /.exec(error.message)?.[0] ?? error.name);
}

/** One short line, without the password of an address. */
function shown(text: string): string {
  return withoutPassword(text).replaceAll(/\s+/g, ' ').slice(0, MAX_SHOWN);
}
