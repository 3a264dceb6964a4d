import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import { freePort } from './redis-servers.js';

/** A Redis in a container, on a port of this machine that it keeps while it is stopped. */
export interface RedisContainer {
  readonly url: string;
  /** Stops it, as an operator would. */
  pause(): Promise<void>;
  /** Starts it again. */
  goOn(): Promise<void>;
  /** Removes it. */
  stop(): Promise<void>;
}

const REDIS_PORT = 6379;

/** Starts a container of the image that `REDIS_IMAGE` names. */
export async function startRedisContainer(): Promise<RedisContainer> {
  const port = await freePort();
  const container = await new GenericContainer(process.env.REDIS_IMAGE ?? 'redis:7-alpine')
    .withExposedPorts({ container: REDIS_PORT, host: port })
    .start();
  const runtime = (await getContainerRuntimeClient()).container;
  const same = runtime.getById(container.getId());
  return {
    url: `redis://${container.getHost()}:${port}`,
    pause: () => runtime.stop(same, { timeout: 5 }),
    goOn: () => runtime.start(same),
    async stop() {
      await container.stop();
    },
  };
}
