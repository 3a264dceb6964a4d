import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const HOST = '127.0.0.1';
const SLOTS = 16_384;

export function canStartServers() {
  return spawnSync('redis-server', ['--version']).status === 0;
}

/** The Redis of `REDIS_URL`, or a redis-server of its own on a free port, which holds nothing back on disk. */
export async function openRedis() {
  const url = process.env.REDIS_URL;
  if (url) return { url, stop() {} };
  const { port, stop } = await startServer();
  return { url: `redis://${HOST}:${port}`, stop };
}

export async function versionOf(url) {
  const client = new Redis(url);
  const [, version] = /redis_version:(\S+)/.exec(await client.info('server')) ?? [];
  client.disconnect();
  return version;
}

/** A cluster of so many masters of its own, without replicas. */
export async function openCluster(masters) {
  const servers = [];
  for (let i = 0; i < masters; i++) {
    const busPort = await freePort();
    const options = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)];
    servers.push({ ...(await startServer(options)), busPort });
  }
  const clients = servers.map(({ port }) => new Redis(port, HOST));
  const share = Math.ceil(SLOTS / masters);
  for (const [i, client] of clients.entries()) {
    const first = i * share;
    const count = Math.min(share, SLOTS - first);
    await client.cluster('ADDSLOTS', ...Array.from({ length: count }, (_, slot) => first + slot));
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
  }
  for (const { port, busPort } of servers.slice(1)) {
    await clients[0].call('CLUSTER', 'MEET', HOST, String(port), String(busPort));
  }
  for (const client of clients) {
    while (!(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) await sleep(50);
  }
  return {
    nodes: servers.map(({ port }) => ({ host: HOST, port })),
    clients,
    stop() {
      for (const client of clients) client.disconnect();
      for (const { stop } of servers) stop();
    },
  };
}

/** A server of its own that can be killed, started again without its data, frozen and thawed. */
export async function openFragileRedis() {
  const port = await freePort();
  let server = await startServer([], port);
  return {
    url: `redis://${HOST}:${port}`,
    kill: () => server.stop(),
    async restart() {
      server = await startServer([], port);
    },
    freeze: () => server.signal('SIGSTOP'),
    thaw: () => server.signal('SIGCONT'),
    stop: () => server.stop(),
  };
}

async function startServer(options = [], atPort) {
  const port = atPort ?? (await freePort());
  const directory = mkdtempSync(join(tmpdir(), 'distlimit-bench-'));
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', HOST, '--save', '', '--dir', directory, ...options],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const stop = () => {
    server.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', stop);
  for await (const line of server.stdout) if (String(line).includes('Ready to accept')) break;
  return { port, stop, signal: (name) => server.kill(name) };
}

async function freePort() {
  const probe = createServer().listen(0, HOST);
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
