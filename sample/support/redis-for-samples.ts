import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from './free-port.js';

/** Where a sample counts. */
export interface RedisForSample {
  /** `undefined`: there is no Redis, and the sample counts in memory. */
  readonly url: string | undefined;
  /** In a sentence. */
  readonly where: string;
  /** Whether the sample has started it, and so may end it. */
  readonly isOwn: boolean;
  /** Kills a server of the sample's own: all it held is gone. */
  kill(): Promise<void>;
  /** Starts it again, empty, where it was. */
  restart(): Promise<void>;
}

/** `REDIS_URL`, else a `redis-server` that is started here and ends with the process, else none. */
export async function redisForSample(program = 'redis-server'): Promise<RedisForSample> {
  const { REDIS_URL } = process.env;
  if (REDIS_URL) return { ...notOwn, url: REDIS_URL, where: 'Counters are in Redis (REDIS_URL).' };
  const server = new OwnServer(program, await freePort());
  if (!(await server.start())) {
    const where =
      'Counters are in memory: there is no REDIS_URL, and no redis-server could be started. On Debian: apt-get install redis-server';
    return { ...notOwn, url: undefined, where };
  }
  return {
    url: server.url,
    where: `Counters are in a Redis that was started for this, on port ${server.port}.`,
    isOwn: true,
    kill: () => server.kill(),
    restart: async () => void (await server.start()),
  };
}

const notOwn = { isOwn: false, kill: async () => {}, restart: async () => {} };

class OwnServer {
  readonly url: string;
  #process: ChildProcess | undefined;

  constructor(
    private readonly program: string,
    readonly port: number,
  ) {
    this.url = `redis://127.0.0.1:${port}`;
    // The server ends with this process. One that a signal ends emits no `exit`, unless it is ended in so many words.
    process.once('exit', () => this.#process?.kill('SIGKILL'));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => {
        if (process.listenerCount(signal) === 0) process.exit(0);
      });
    }
  }

  /** False where there is no such program, or it doesn't start. */
  async start(): Promise<boolean> {
    if (this.#process !== undefined) return true;
    const options = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', ''];
    const server = spawn(this.program, options, { stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = once(server, 'exit').catch(() => {});
    const isReady = await Promise.race([saysReady(server), ended.then(() => false)]);
    this.#process = isReady ? server : undefined;
    return isReady;
  }

  async kill(): Promise<void> {
    const server = this.#process;
    if (server === undefined) return;
    this.#process = undefined;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  }
}

/** Goes on reading after that: the server must not wait for a reader. */
function saysReady({ stdout }: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    stdout?.on('data', (text: Buffer) => {
      if (text.includes('Ready to accept')) resolve(true);
    });
  });
}
