import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { messageOf, withoutPassword } from '../core/errors.js';
import type { RateLimiterStatus } from '../core/limiter-options.js';
import type { OnUnavailable } from '../core/policy.js';
import { RateLimiter } from '../core/rate-limiter.js';
import { RateLimiterService } from '../nest/rate-limiter.service.js';

export interface RateLimitHealthOptions {
  /**
   * What it means that limits hold by each instance's share, because Redis is away or not all instances are back.
   * `degraded` (the default) is a status of Terminus 12, with HTTP status 200; earlier versions know none, and it is
   * `up` there.
   */
  degradedIs?: 'degraded' | 'up' | 'down';
  /** How long the store may take to answer, in milliseconds, ≥ 1; default 1,000. */
  timeoutMs?: number;
}

/** What is told beside the status. */
export type RateLimitHealth = Pick<RateLimiterStatus, 'driver' | 'breaker' | 'fleetSize' | 'lastError'> & {
  readonly degraded: boolean;
  /** Why it is down. */
  readonly message?: string;
};

/** Nobody's: looked at, never charged. */
const SUBJECT = 'health check';
const REFUSES: ReadonlySet<string> = new Set<OnUnavailable>(['deny', 'throw']);
const NOBODY_GOES_ON = 'Redis is away, and no policy goes on without it';

/** Tells Terminus whether limits can be decided: by asking, without charging anybody. */
@Injectable()
export class RateLimitHealthIndicator {
  readonly #limiter: RateLimiterService;
  readonly #indicators: HealthIndicatorService;

  constructor(limiter: RateLimiterService, indicators: HealthIndicatorService) {
    this.#limiter = limiter;
    this.#indicators = indicators;
  }

  /** `up`; degraded while the fallback decides; `down` where nothing can be decided. Never rejects. */
  async isHealthy<const Key extends string>(
    key: Key,
    { degradedIs = 'degraded', timeoutMs = 1_000 }: RateLimitHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const unanswered = await this.#failure(timeoutMs);
    const { driver, breaker, fleetSize, lastError } = this.#limiter.status();
    const isAway = breaker === 'open' || breaker === 'half-open';
    const failure = unanswered ?? (isAway && !this.#goesOnWithoutStore ? NOBODY_GOES_ON : undefined);
    const degraded = failure === undefined && (isAway || breaker === 'recovering');
    const health: RateLimitHealth = {
      driver,
      breaker,
      fleetSize,
      degraded,
      lastError: lastError === null ? null : withoutPassword(lastError),
      ...(failure !== undefined && { message: withoutPassword(failure) }),
    };
    const indicator = this.#indicators.check(key);
    if (failure !== undefined || (degraded && degradedIs === 'down')) return indicator.down(health);
    if (degraded && degradedIs === 'degraded' && 'degraded' in indicator) {
      return (indicator as { degraded(data: object): HealthIndicatorResult<Key> }).degraded(health);
    }
    return indicator.up(health);
  }

  get #goesOnWithoutStore(): boolean {
    const policies = this.#limiter.policies();
    return policies.length === 0 || policies.some(({ onUnavailable }) => !REFUSES.has(onUnavailable));
  }

  /** A resolver is not asked: it need not know of this subject. */
  async #probe(policy: string): Promise<void> {
    const engine = RateLimiter.engineOf(this.#limiter);
    await engine.probe(engine.slot(policy), SUBJECT);
  }

  /** Why the driver can't answer; `undefined` where it can, or has nothing to answer. */
  async #failure(timeoutMs: number): Promise<string | undefined> {
    const [policy] = this.#limiter.policies();
    if (policy === undefined) return undefined;
    const giveUp = new AbortController();
    try {
      return await Promise.race([
        this.#probe(policy.name).then(
          () => undefined,
          (error: unknown) => reasonOf(error),
        ),
        sleep(timeoutMs, `the driver did not answer within ${timeoutMs} ms`, {
          signal: giveUp.signal,
          ref: false,
        }),
      ]);
    } finally {
      giveUp.abort();
    }
  }
}

function reasonOf(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown };
  return cause instanceof Error ? `${messageOf(error)}: ${messageOf(cause)}` : messageOf(error);
}
