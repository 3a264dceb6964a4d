import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** Real servers that a test starts on free ports, and can stop, kill and freeze. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** A connection of the test's own, closed with the server. */
  readonly client: Redis;
  /** SIGKILL: what was in memory is gone. */
  kill(): Promise<void>;
  /** Starts it again, empty, on the same port. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing answers. */
  freeze(): void;
  resume(): void;
  stop(): Promise<void>;
}

export interface RedisCluster {
  /** The masters first, then a replica of each. */
  readonly nodes: readonly RedisServer[];
  readonly startupNodes: { readonly host: string; readonly port: number }[];
  /** The master that has a hash tag's slot. */
  masterOf(tag: string): Promise<RedisServer>;
  /** Moves a hash tag's slot to another master, and meanwhile, before the first of its keys goes, does the work. */
  moveSlot(tag: string, work: () => Promise<void>): Promise<void>;
  /** From now on a master that is silent for a second is replaced; before, a busy machine must not be taken for that. */
  failOverSoon(): Promise<void>;
  stop(): Promise<void>;
}

export interface SentinelSet {
  readonly name: string;
  readonly sentinels: { readonly host: string; readonly port: number }[];
  /** The first master first. */
  readonly servers: readonly RedisServer[];
  /** Has another server made the master, and the old one a replica of it. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
const SLOTS = 16_384;
const HOW_TO_GET_ONE =
  'The Redis tests need a redis-server or valkey-server on the PATH (or REDIS_URL, for those that need no server of their own). On Debian or Ubuntu: apt-get install redis-server';

let found: string | undefined;

/** The name of a server program on the PATH, or that of `TEST_SERVER_PROGRAM`. */
function serverProgram(): string {
  const { TEST_SERVER_PROGRAM } = process.env;
  const names = TEST_SERVER_PROGRAM ? [TEST_SERVER_PROGRAM] : ['redis-server', 'valkey-server'];
  for (const name of names) {
    if (found !== undefined) break;
    try {
      execFileSync(name, ['--version'], { stdio: 'ignore' });
      found = name;
    } catch {
      // Perhaps the other one.
    }
  }
  if (found === undefined) throw new Error(HOW_TO_GET_ONE);
  return found;
}

/** Some Redis: that of `REDIS_URL`, or one of its own. Use a prefix of your own, it may be a shared one. */
export async function anyRedis(): Promise<Pick<RedisServer, 'url' | 'client' | 'stop'>> {
  const url = process.env.REDIS_URL;
  if (url === undefined || url === '') return startRedis();
  const client = new Redis(url);
  return { url, client, stop: async () => client.disconnect() };
}

export async function startRedis(...args: string[]): Promise<RedisServer> {
  const [server] = await startAll(1, (port) => new ServerProcess(port, ['--port', String(port), ...args]));
  return server!;
}

/** Three masters, and a replica of each. */
export async function startCluster(): Promise<RedisCluster> {
  const nodes = await startAll(6, (port, busPort) => {
    const options = [
      '--cluster-enabled',
      'yes',
      // Nodes hear of each other in parts of this time: with a long one they can take half a minute to join.
      '--cluster-node-timeout',
      '5000',
      '--repl-ping-replica-period',
      '1',
    ];
    return new ServerProcess(port, [
      ...['--port', String(port), '--cluster-port', String(busPort), '--cluster-replica-no-failover', 'no'],
      ...options,
      ...['--repl-diskless-sync-delay', '0'],
    ]);
  });
  // How long nodes wait before they replace one that doesn't answer.
  const setNodeTimeout = async (ms: number) => {
    await Promise.all(nodes.map(({ client }) => client.config('SET', 'cluster-node-timeout', ms)));
  };
  await orStop(nodes, async () => {
    await joinCluster(nodes);
    await setNodeTimeout(30_000);
  });
  return {
    nodes,
    startupNodes: nodes.map(({ port }) => ({ host: HOST, port })),
    masterOf: (tag) => masterOf(nodes, tag),
    moveSlot: (tag, work) => moveSlot(nodes, tag, work),
    failOverSoon: () => setNodeTimeout(1_000),
    stop: () => stopAll(nodes),
  };
}

/** Makes masters of the first three, and replicas of the others. */
async function joinCluster(nodes: readonly ServerProcess[]): Promise<void> {
  const masters = nodes.slice(0, 3);
  const share = Math.ceil(SLOTS / masters.length);
  await Promise.all(
    masters.map(({ client }, i) => {
      const count = Math.min(share, SLOTS - i * share);
      return client.cluster('ADDSLOTS', ...Array.from({ length: count }, (_, slot) => i * share + slot));
    }),
  );
  await Promise.all(nodes.map(({ client }, i) => client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))));
  for (const { port, busPort } of nodes.slice(1)) {
    await nodes[0]!.client.call('CLUSTER', 'MEET', HOST, String(port), String(busPort));
  }
  await until(async () => {
    const known = await Promise.all(
      nodes.map(({ client }) => client.call('CLUSTER', 'INFO') as Promise<string>),
    );
    return known.every((info) => info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:6'));
  });
  for (const [i, replica] of nodes.slice(3).entries()) {
    const master = (await masters[i]!.client.call('CLUSTER', 'MYID')) as string;
    await replica.client.call('CLUSTER', 'REPLICATE', master);
  }
  await until(async () => {
    const maps = await Promise.all(
      nodes.map(({ client }) => client.call('CLUSTER', 'SLOTS') as Promise<unknown[][]>),
    );
    return maps.every((ranges) => ranges.length === 3 && ranges.every((range) => range.length === 4));
  });
}

async function slotOf({ client }: ServerProcess, tag: string): Promise<number> {
  return (await client.call('CLUSTER', 'KEYSLOT', `{${tag}}`)) as number;
}

async function masterOf(nodes: readonly ServerProcess[], tag: string): Promise<ServerProcess> {
  const slot = await slotOf(nodes[0]!, tag);
  const ranges = (await nodes[0]!.client.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  const [, , [, port]] = ranges.find(([first, last]) => first <= slot && slot <= last)!;
  return nodes.find((node) => node.port === port)!;
}

async function moveSlot(nodes: readonly ServerProcess[], tag: string, work: () => Promise<void>) {
  const slot = String(await slotOf(nodes[0]!, tag));
  const source = await masterOf(nodes, tag);
  const target = nodes.slice(0, 3).find((node) => node !== source)!;
  const sourceId = (await source.client.call('CLUSTER', 'MYID')) as string;
  const targetId = (await target.client.call('CLUSTER', 'MYID')) as string;
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
  await work();
  const keys = (await source.client.call('CLUSTER', 'GETKEYSINSLOT', slot, '1000')) as string[];
  await source.client.call('MIGRATE', HOST, String(target.port), '', '0', '1000', 'KEYS', ...keys);
  for (const { client } of [target, source]) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
}

/** A master with two replicas, watched by three Sentinels. */
export async function startSentinels(): Promise<SentinelSet> {
  const name = 'limits';
  const servers = await startAll(3, (port) => {
    return new ServerProcess(port, ['--port', String(port), '--repl-diskless-sync-delay', '0']);
  });
  const [master] = servers;
  const replicas = servers.slice(1);
  await orStop(servers, () =>
    Promise.all(replicas.map(({ client }) => client.call('REPLICAOF', HOST, String(master!.port)))),
  );
  const sentinels = await orStop(servers, () =>
    startAll(3, (port) => {
      return new ServerProcess(
        port,
        ['--port', String(port), '--sentinel'],
        [
          `sentinel monitor ${name} ${HOST} ${master!.port} 2`,
          `sentinel down-after-milliseconds ${name} 1000`,
          `sentinel failover-timeout ${name} 3000`,
        ],
      );
    }),
  );
  const first = sentinels[0]!.client;
  await orStop([...sentinels, ...servers], () =>
    until(async () => {
      const known = (await first.call('SENTINEL', 'MASTER', name)) as string[];
      const value = (field: string) => known[known.indexOf(field) + 1];
      return value('num-slaves') === '2' && value('num-other-sentinels') === '2';
    }),
  );
  return {
    name,
    servers,
    sentinels: sentinels.map(({ port }) => ({ host: HOST, port })),
    async failOver() {
      await until(async () => {
        try {
          return (await first.call('SENTINEL', 'FAILOVER', name)) === 'OK';
        } catch {
          return false;
        }
      });
      await until(async () => {
        const [, port] = (await first.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as string[];
        return Number(port) !== master!.port;
      });
      // Until some seconds later the old one takes itself for the master, too.
      await until(async () => ((await master!.client.call('ROLE')) as string[])[0] === 'slave');
    },
    stop: () => stopAll([...sentinels, ...servers]),
  };
}

/** Looks again and again, until it is so. What is waited for is another process: there is no clock to hold. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const isLate = once(late.signal, 'abort').then(() => {
    throw new Error(`not so within ${timeoutMs} ms`);
  });
  try {
    while (!(await Promise.race([condition(), isLate]))) await Promise.race([sleep(20), isLate]);
  } finally {
    clearTimeout(timer);
  }
}

class ServerEnded extends Error {}

class ServerProcess implements RedisServer {
  readonly url: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'distlimit-redis-'));
  readonly #args: readonly string[];
  #shell: ChildProcess | undefined;
  #pid = 0;
  #client: Redis | undefined;

  constructor(
    readonly port: number,
    args: readonly string[],
    config: readonly string[] = [],
  ) {
    this.url = `redis://${HOST}:${port}`;
    const file = join(this.#directory, 'server.conf');
    writeFileSync(file, config.join('\n'));
    this.#args = [
      file,
      ...args,
      '--bind',
      HOST,
      '--dir',
      this.#directory,
      '--save',
      '',
      '--appendonly',
      'no',
    ];
  }

  get busPort(): number {
    return Number(this.#args[this.#args.indexOf('--cluster-port') + 1]);
  }

  get client(): Redis {
    return (this.#client ??= new Redis({
      host: HOST,
      port: this.port,
      retryStrategy: () => 20,
      maxRetriesPerRequest: null,
      // Else a client whose server was killed keeps the process two seconds longer.
      disconnectTimeout: 100,
    }).on('error', () => {}));
  }

  async start(): Promise<void> {
    // The shell ends with the server, and the server when the shell's input ends: also when the tests were killed,
    // and could do nothing.
    const script =
      'exec 3<&0; "$@" >/dev/null 2>&1 & echo $!; (read -r line <&3; kill -9 $!) >/dev/null 2>&1 & wait $!';
    const shell = spawn('sh', ['-c', script, 'sh', serverProgram(), ...this.#args], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#shell = shell;
    const [line] = (await once(shell.stdout, 'data')) as [Buffer];
    this.#pid = Number(String(line));
    await until(async () => {
      if (shell.exitCode !== null) throw new ServerEnded(`the server on port ${this.port} ended by itself`);
      // A connection to the server of before may not have been found closed yet.
      const info = this.client.status === 'ready' ? await this.client.info('server').catch(() => '') : '';
      return info.includes(`process_id:${this.#pid}\r`);
    });
  }

  async kill(): Promise<void> {
    const shell = this.#shell!;
    this.#shell = undefined;
    shell.stdin!.end();
    if (shell.exitCode === null) await once(shell, 'close');
  }

  restart(): Promise<void> {
    return this.start();
  }

  freeze(): void {
    process.kill(this.#pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.#pid, 'SIGCONT');
  }

  async stop(): Promise<void> {
    this.#client?.disconnect();
    if (this.#shell !== undefined) await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Starts so many servers, or none. */
async function startAll(
  count: number,
  make: (port: number, busPort: number) => ServerProcess,
): Promise<ServerProcess[]> {
  const starting = await Promise.allSettled(Array.from({ length: count }, () => startOne(make)));
  const servers = starting.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const failed = starting.find((start) => start.status === 'rejected');
  if (failed === undefined) return servers;
  await stopAll(servers);
  throw failed.reason;
}

async function startOne(make: (port: number, busPort: number) => ServerProcess): Promise<ServerProcess> {
  for (let attempts = 1; ; attempts++) {
    const server = make(await freePort(), await freePort());
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Somebody else may have taken the port since it was found free.
      if (!(error instanceof ServerEnded) || attempts === 5) throw error;
    }
  }
}

/** What was started is stopped where `work` fails: a server left running would keep the tests from ending. */
async function orStop<T>(servers: readonly ServerProcess[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
}

async function stopAll(servers: readonly ServerProcess[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

/** A port that nobody listens on, of those that no system gives to outgoing connections. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer().listen(port, HOST);
    try {
      await once(probe, 'listening');
    } catch {
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
