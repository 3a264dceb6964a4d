import { RateLimitConfigError } from '../../core/errors.js';
import type { RedisClient, RedisLibrary } from './redis-client.js';
import type { ParsedSource } from '../../core/redis-address.js';

const CONNECT_TIMEOUT_MS = 2_000;
/** By ioredis' two seconds, one who closes a connection that is gone would keep the process for so long. */
const DISCONNECT_TIMEOUT_MS = 100;
const LONGEST_PAUSE_MS = 500;
const TRY_AGAIN_MS = 10;

/** Soon at first, then at most about twice a second; not all instances at once. */
function reconnectPauseMs(attempt: number): number {
  return Math.min(10 * 2 ** Math.min(attempt, 10), LONGEST_PAUSE_MS) + Math.random() * 50;
}

/**
 * Nothing is kept for later: a charge that waited in a queue, or was sent once more after a broken connection, would be
 * dated wrong or counted twice.
 */
const OWN_OPTIONS = {
  enableAutoPipelining: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  keyPrefix: '',
  readOnly: false,
  monitor: false,
  // A master that became a replica: what is behind the name or Sentinel now may be another.
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
};

const OWN_SERVER_OPTIONS = {
  ...OWN_OPTIONS,
  enableOfflineQueue: false,
  lazyConnect: true,
  retryStrategy: reconnectPauseMs,
};

/** For the connection that listens: it may wait as long as it takes. */
const SUBSCRIBER_OPTIONS = {
  ...OWN_SERVER_OPTIONS,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  // Done by whoever listens: nobody handles it where ioredis' own attempt fails, which ends the process.
  autoResubscribe: false,
};

function ownClusterOptions(given: { redisOptions?: object }) {
  return {
    enableAutoPipelining: false,
    enableOfflineQueue: false,
    lazyConnect: true,
    keyPrefix: '',
    scaleReads: 'master',
    shardedSubscribers: false,
    clusterRetryStrategy: reconnectPauseMs,
    // Slots are looked up again when a command fails. By ioredis' own timer that would go on after disconnect().
    slotsRefreshInterval: 0,
    // A command whose connection broke may have been run: it is not for ioredis to send it to another node.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    redisOptions: { ...given.redisOptions, ...OWN_OPTIONS },
  };
}

/**
 * Makes a client of our own, not connected yet.
 * @throws RateLimitConfigError with `RL_PEER_MISSING` where ioredis is needed and not installed
 */
export async function openClient(source: ParsedSource): Promise<RedisClient> {
  if (source.kind === 'client') {
    const client = source.client as unknown as RedisClient;
    return client.isCluster === true
      ? client.duplicate([], ownClusterOptions(client.options))
      : client.duplicate(OWN_SERVER_OPTIONS);
  }
  const { Redis, Cluster } = await loadIoredis();
  if (source.kind === 'url') return new Redis(source.url, OWN_SERVER_OPTIONS);
  if (source.kind === 'options') return new Redis({ ...source.options, ...OWN_SERVER_OPTIONS });
  return new Cluster(source.nodes, { ...source.options, ...ownClusterOptions(source.options) });
}

/** A connection beside `client` that listens. A cluster's client has one of its own. */
export function subscriberOf(client: RedisClient): RedisClient {
  return client.isCluster === true ? client : client.duplicate(SUBSCRIBER_OPTIONS);
}

async function loadIoredis(): Promise<RedisLibrary> {
  try {
    return (await import('ioredis')) as unknown as RedisLibrary;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new RateLimitConfigError({
      code: 'RL_PEER_MISSING',
      path: 'redis',
      expected: "the package 'ioredis' to be installed (npm install ioredis)",
      received: 'no such package',
    });
  }
}
