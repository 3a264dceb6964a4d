import { RateLimitConfigError } from './errors.js';
import { parseWhole } from './validation.js';

/** An ioredis `Redis` or `Cluster` of the application's own. It is duplicated, never used and never closed. */
export interface RedisClientLike {
  readonly status: string;
  duplicate(...overrides: never[]): unknown;
}

/** A Redis cluster: some of its nodes, and ioredis' `ClusterOptions`. */
export interface RedisClusterSource {
  readonly nodes: readonly (string | number | { readonly host?: string; readonly port?: number })[];
  readonly options?: object;
}

/** Redis behind Sentinel: ioredis' options with at least these two. */
export interface RedisSentinelSource {
  readonly sentinels: readonly { readonly host?: string; readonly port?: number }[];
  /** The name of the group of masters. */
  readonly name: string;
  readonly [option: string]: unknown;
}

/** One Redis, by ioredis' `RedisOptions`: at least one of these three. */
export interface RedisServerSource {
  readonly host?: string;
  readonly port?: number | string;
  readonly path?: string;
  readonly [option: string]: unknown;
}

/** Where Redis is: a URL (`redis://`, `rediss://`), ioredis options, a client, or what a cluster or Sentinel needs. */
export type RedisSource =
  string | URL | RedisClientLike | RedisClusterSource | RedisSentinelSource | RedisServerSource;

/** A source that was looked at, by its kind. */
export type ParsedSource =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'client'; readonly client: RedisClientLike }
  | { readonly kind: 'cluster'; readonly nodes: readonly unknown[]; readonly options: object }
  | { readonly kind: 'options'; readonly options: object };

const EXPECTED =
  "a URL such as 'redis://localhost:6379', ioredis options (host, port or path), an ioredis Redis or Cluster, { nodes, options } or { sentinels, name }";

const MAX_PORT = 65_535;

/** @throws RateLimitConfigError with `RL_INVALID_OPTION` */
export function parseRedisSource(source: unknown): ParsedSource {
  if (typeof source === 'string' || source instanceof URL)
    return { kind: 'url', url: requireUrl(String(source)) };
  if (typeof source !== 'object' || source === null) throw invalid('redis', EXPECTED, source);
  const given = source as Record<string, unknown>;
  if (typeof given.duplicate === 'function') {
    if (typeof given.status !== 'string')
      throw invalid('redis', 'an ioredis client: this one has no status', source);
    return { kind: 'client', client: source as RedisClientLike };
  }
  if (given.nodes !== undefined) {
    if (!isFilled(given.nodes)) throw invalid('redis.nodes', 'at least one node', given.nodes);
    const { options = {} } = given;
    if (typeof options !== 'object' || options === null) throw invalid('redis.options', 'an object', options);
    return { kind: 'cluster', nodes: given.nodes, options };
  }
  if (given.sentinels !== undefined) {
    if (!isFilled(given.sentinels))
      throw invalid('redis.sentinels', 'at least one Sentinel', given.sentinels);
    if (typeof given.name !== 'string' || given.name === '') {
      throw invalid('redis.name', "the name of the master's group", given.name);
    }
    return { kind: 'options', options: given };
  }
  requireServer(given);
  return { kind: 'options', options: given };
}

/** What ioredis would put before every key: ours are given whole, so it becomes part of the prefix. */
export function keyPrefixOf(source: ParsedSource): string {
  if (source.kind === 'url') return '';
  const given = source.kind === 'client' ? (source.client as { options?: object }).options : source.options;
  const options = (given ?? {}) as { keyPrefix?: unknown; redisOptions?: { keyPrefix?: unknown } };
  const prefix = options.keyPrefix ?? options.redisOptions?.keyPrefix ?? '';
  if (typeof prefix === 'string' && !/[{}]/.test(prefix)) return prefix;
  throw invalid('redis.keyPrefix', 'text without braces: they would decide the slot of every key', prefix);
}

function requireUrl(url: string): string {
  if (url.startsWith('/')) return url;
  if (/^rediss?:\/\/./.test(url) && URL.canParse(url)) return url;
  throw invalid('redis', EXPECTED, url);
}

function requireServer({ host, port, path }: Record<string, unknown>): void {
  if (host === undefined && port === undefined && path === undefined) {
    throw invalid('redis', `${EXPECTED}; in options at least one of host, port and path`, 'none of them');
  }
  if (host !== undefined && (typeof host !== 'string' || host === ''))
    throw invalid('redis.host', 'the name of a host', host);
  if (path !== undefined && (typeof path !== 'string' || path === '')) {
    throw invalid('redis.path', 'the path of a socket', path);
  }
  const number = port === undefined ? 1 : parseWhole(port, 1);
  if (number === undefined || number > MAX_PORT)
    throw invalid('redis.port', `a port, 1 to ${MAX_PORT}`, port);
}

function isFilled(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0;
}

function invalid(path: string, expected: string, received: unknown): RateLimitConfigError {
  return new RateLimitConfigError({ code: 'RL_INVALID_OPTION', path, expected, received });
}
