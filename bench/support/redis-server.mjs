import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The Redis of `REDIS_URL`, or a redis-server of its own on a free port, which holds nothing back on disk. */
export async function openRedis() {
  const url = process.env.REDIS_URL;
  if (url) return { url, stop() {} };
  const port = await freePort();
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => server.kill('SIGKILL'));
  for await (const line of server.stdout) if (String(line).includes('Ready to accept')) break;
  return { url: `redis://127.0.0.1:${port}`, stop: () => server.kill('SIGKILL') };
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}
