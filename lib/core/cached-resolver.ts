import { monotonicClock, type Clock } from './clock.js';
import { requireDuration, type Duration } from './duration.js';
import { RateLimitConfigError } from './errors.js';
import { allOf, isPromiseLike, type MaybePromise } from './maybe-promise.js';
import {
  requireParallel,
  type PolicyResolver,
  type QuotaOverride,
  type ResolverRequest,
} from './policy-resolver.js';
import { RecentCache } from './recent-cache.js';
import { validate, wholeNumber } from './validation.js';

export interface CachedResolverOptions {
  /** How long an answer is used, counted from the question, at least 1 ms. */
  readonly ttl: Duration;
  /** How many subjects are remembered for a policy, ≥ 1; default 10,000. Up to twice as many for a moment. */
  readonly maxEntries?: number;
  readonly clock?: Clock;
}

const DEFAULT_ENTRIES = 10_000;
/** Subjects of calls are no longer. */
const LONGEST_SUBJECT = 1_024;

type Charge = ResolverRequest['charges'][number];

interface Answer {
  readonly until: number;
  override: MaybePromise<QuotaOverride | undefined>;
}

/**
 * A resolver that is asked once for each policy and subject within `ttl`. What is known is answered at once; calls that
 * come while it is being asked wait for the same answer; failures are not remembered. So its answers must follow from
 * policy and subject alone, whatever the call.
 * @throws RateLimitConfigError where an option is wrong
 */
export function cachedResolver(resolver: PolicyResolver, options: CachedResolverOptions): PolicyResolver {
  const { ttl, maxEntries = DEFAULT_ENTRIES, clock = monotonicClock } = options;
  const ttlMs = requireDuration('cachedResolver.ttl', ttl);
  if (ttlMs < 1) {
    throw new RateLimitConfigError({
      code: 'RL_INVALID_DURATION',
      path: 'cachedResolver.ttl',
      expected: 'at least 1 ms',
      received: ttl,
    });
  }
  const capacity = validate(wholeNumber('RL_INVALID_OPTION', 1), maxEntries, 'cachedResolver.maxEntries');
  return new CachedResolver(resolver, ttlMs, capacity, clock);
}

class CachedResolver implements PolicyResolver {
  readonly #resolver: PolicyResolver;
  readonly #ttlMs: number;
  readonly #capacity: number;
  readonly #clock: Clock;
  /** By policy, then by subject. */
  readonly #answers = new Map<string, RecentCache<Answer>>();
  readonly concerns: PolicyResolver['concerns'];

  constructor(resolver: PolicyResolver, ttlMs: number, capacity: number, clock: Clock) {
    this.#resolver = resolver;
    this.concerns = resolver.concerns;
    this.#ttlMs = ttlMs;
    this.#capacity = capacity;
    this.#clock = clock;
  }

  resolve({ charges, call }: ResolverRequest): MaybePromise<readonly (QuotaOverride | undefined)[]> {
    const now = this.#clock.now();
    const answers = charges.map((charge) => this.#find(charge, now));
    const asked = charges.filter((_, i) => answers[i] === undefined);
    const fresh = asked.length === 0 ? [] : this.#ask(asked, call, now);
    return allOf(answers.map((answer) => (answer ?? fresh.shift()!).override));
  }

  #find({ policy, subject }: Charge, now: number): Answer | undefined {
    const answer = this.#answers.get(policy)?.get(subject);
    return answer !== undefined && now < answer.until ? answer : undefined;
  }

  #ask(charges: readonly Charge[], call: ResolverRequest['call'], now: number): Answer[] {
    const overrides = this.#resolver.resolve({ charges, call });
    const until = now + this.#ttlMs;
    if (!isPromiseLike(overrides)) {
      requireParallel(overrides, charges.length);
      return charges.map((charge, i) => this.#remember(charge, { until, override: overrides?.[i] }));
    }
    const checked = Promise.resolve(overrides).then((found) => {
      requireParallel(found, charges.length);
      return found;
    });
    return charges.map((charge, i) => {
      const override = checked.then((found) => found?.[i]);
      const answer = this.#remember(charge, { until, override });
      override.then(
        (value) => void (answer.override = value),
        () => this.#forget(charge, answer),
      );
      return answer;
    });
  }

  #remember({ policy, subject }: Charge, answer: Answer): Answer {
    let known = this.#answers.get(policy);
    if (known === undefined) {
      known = new RecentCache(this.#capacity, LONGEST_SUBJECT);
      this.#answers.set(policy, known);
    }
    known.set(subject, answer);
    return answer;
  }

  /** Unless another answer has taken its place. */
  #forget({ policy, subject }: Charge, answer: Answer): void {
    const known = this.#answers.get(policy);
    if (known?.get(subject) === answer) known.set(subject, { until: -Infinity, override: undefined });
  }
}
