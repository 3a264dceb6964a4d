import type { Type } from '@nestjs/common';
import * as v from 'valibot';
import type { CallContext } from '../core/call-context.js';
import type { Clock } from '../core/clock.js';
import {
  completeEngine,
  engineRules,
  type EngineOptions,
  type HybridOptions,
  type MemoryOptions,
} from '../core/engine-options.js';
import type { RateLimitObserver } from '../core/observer.js';
import type { RedisSource } from '../core/redis-address.js';
import type { PolicyOptions } from '../core/policy.js';
import type { PolicyResolver } from '../core/policy-resolver.js';
import type { PolicySource } from '../core/policy-source.js';
import { boolean, callable, isName, objectLike, parseWhole, rule, validate } from '../core/validation.js';
import type { Verdict } from '../core/verdict.js';
import type { HeaderFormat } from '../http/rate-limit-headers.js';
import { parseTrustedProxies, type TrustedProxies } from '../http/trusted-proxies.js';
import { userOfRequest } from './user-of-request.js';

/** What `RateLimitModule.forRoot()` takes. */
export interface RateLimitModuleOptions {
  /**
   * URL, ioredis options, an ioredis `Redis` or `Cluster`, `{ nodes, options }` or `{ sentinels, name, … }`. Left out:
   * everything runs in memory. Given: the hybrid driver, unless `driver` says otherwise.
   */
  redis?: RedisSource;
  /** `memory`, `redis`, `hybrid`, or a driver of your own. Default: `hybrid` with `redis`, else `memory`. */
  driver?: EngineOptions['driver'];
  memory?: MemoryOptions;
  /** How outages of Redis are gone through. */
  hybrid?: HybridOptions;
  /** What every key in Redis begins with, without braces; default `distlimit`. Without effect in memory. */
  prefix?: string;
  /** By name. Without `sources` each has a limit and a window; with them, sources may bring what is missing here. */
  policies?: Record<string, Partial<PolicyOptions>>;
  /** Where policies come from besides `policies`; later sources win, and changes apply while the application runs. */
  sources?: readonly PolicySource[];
  /** Policies checked on every handler the guard sees, before what decorators add. */
  global?: string | string[];
  /** Per-key quota: tiers, tenants. */
  resolver?: PolicyResolver | Type<PolicyResolver>;
  /** Who is calling. Default: `request.user.id`, else `request.user.sub`. */
  userOf?: (call: CallContext) => string | undefined;
  /** CIDRs, `loopback`, `linklocal`, `uniquelocal`, a hop count, or `adapter` for the framework's own `req.ip`. */
  trustedProxies?: TrustedProxies;
  /** IPv6 clients are counted by networks of this many bits, 0 to 128; default 64. */
  ipv6Prefix?: number;
  /** Default `['ietf']`. */
  headers?: HeaderFormat[] | false;
  /** HMAC secret: stores never see raw identifiers. */
  hashKeys?: string;
  observers?: (RateLimitObserver | Type<RateLimitObserver>)[];
  /** Calls that no policy concerns. */
  skip?: (call: CallContext) => boolean | Promise<boolean>;
  /** Your own exception and body. */
  denied?: (call: CallContext, verdicts: readonly Verdict[]) => Error;
  /** Default true: global guard and interceptor. */
  registerGuard?: boolean;
  /** `false`: every decision is "allowed", and nothing is counted. */
  enabled?: boolean;
  clock?: Clock;
}

const names = rule('RL_INVALID_OPTION', 'the name of a policy, or an array of names', (value) => {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.every((name) => typeof name === 'string') ? list : undefined;
});

const headerFormats = rule(
  'RL_INVALID_OPTION',
  "an array of 'ietf', 'triple', 'legacy', or false",
  (value) => {
    if (value === false) return [];
    const known = ['ietf', 'triple', 'legacy'];
    return Array.isArray(value) && value.every((format) => known.includes(format as string))
      ? (value as HeaderFormat[])
      : undefined;
  },
);

const trustedProxies = rule(
  'RL_INVALID_TRUSTED_PROXIES',
  'trusted proxies',
  (value) => value as TrustedProxies,
);

const optionsSchema = v.strictObject({
  ...engineRules,
  policies: v.optional(
    rule('RL_INVALID_OPTION', 'an object of policies by name', (value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? (value as Record<string, Partial<PolicyOptions>>)
        : undefined,
    ),
  ),
  sources: v.optional(
    v.array(
      rule('RL_INVALID_OPTION', 'a PolicySource: an object with a name and open()', (value) =>
        isSource(value) ? value : undefined,
      ),
    ),
    () => [],
  ),
  global: v.optional(names, []),
  resolver: v.optional(
    objectLike<PolicyResolver | Type<PolicyResolver>>('a PolicyResolver, or a class of one'),
  ),
  userOf: v.optional(callable<NonNullable<RateLimitModuleOptions['userOf']>>(), () => userOfRequest),
  trustedProxies: v.optional(trustedProxies),
  ipv6Prefix: v.optional(
    rule('RL_INVALID_OPTION', 'a whole number from 0 to 128', (value) => {
      const bits = parseWhole(value, 0);
      return bits !== undefined && bits <= 128 ? bits : undefined;
    }),
    64,
  ),
  headers: v.optional(headerFormats, () => ['ietf'] as HeaderFormat[]),
  observers: v.optional(
    v.array(
      objectLike<RateLimitObserver | Type<RateLimitObserver>>('a RateLimitObserver, or a class of one'),
    ),
    () => [],
  ),
  skip: v.optional(callable<NonNullable<RateLimitModuleOptions['skip']>>()),
  denied: v.optional(callable<NonNullable<RateLimitModuleOptions['denied']>>()),
  registerGuard: v.optional(boolean(), true),
});

function isSource(value: unknown): value is PolicySource {
  const { name, open, unit } = (value ?? {}) as Partial<PolicySource>;
  return (
    isName(name) && typeof open === 'function' && (unit === undefined || unit === 'set' || unit === 'policy')
  );
}

/** The module's options, checked and completed: what is injected. Policies are completed by the registry. */
export type CompletedOptions = v.InferOutput<typeof optionsSchema>;

/** @throws RateLimitConfigError for the first thing that is wrong */
export function completeOptions(given: RateLimitModuleOptions): CompletedOptions {
  const options = validate(optionsSchema, given, '');
  if (options.trustedProxies !== undefined && options.trustedProxies !== 'adapter') {
    parseTrustedProxies(options.trustedProxies);
  }
  completeEngine(options);
  return options;
}
