import type { Writable } from 'node:stream';

/**
 * What this library needs of an ioredis client, `Redis` or `Cluster`, of either major. Declared here, so that the
 * published types don't need ioredis where Redis isn't used.
 */
export interface RedisClient {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options: object;
  /** The socket, once there is one; a cluster's client has none of its own. */
  readonly stream?: Pick<Writable, 'cork' | 'uncork'>;
  connect(): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
  duplicate(...overrides: unknown[]): RedisClient;
  evalshaBuffer(sha: string, keyCount: number, ...args: (string | Buffer)[]): Promise<unknown>;
  evalBuffer(source: string, keyCount: number, ...args: (string | Buffer)[]): Promise<unknown>;
  script(subcommand: 'LOAD', source: string): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

/** A client that can be subscribed, or send anything, or is a cluster's: what only some have. */
export interface ClusterClient extends RedisClient {
  nodes(role: 'master'): RedisClient[];
  /** The nodes of each slot, the master first. */
  readonly slots: readonly (readonly string[] | undefined)[];
  refreshSlotsCache(): void;
}

/** What `import('ioredis')` gives. */
export interface RedisLibrary {
  readonly Redis: new (...args: unknown[]) => RedisClient;
  readonly Cluster: new (nodes: readonly unknown[], options: object) => RedisClient;
}
