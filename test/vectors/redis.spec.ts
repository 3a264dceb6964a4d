import { ALGORITHMS } from '../../lib/algorithms/index.js';
import { RedisDriver } from '../../lib/drivers/redis/redis-driver.js';
import { driverExecutor } from '../support/driver-executor.js';
import { anyRedis } from '../support/redis-servers.js';
import { runVectors } from '../support/run-vectors.js';
import { VECTORS } from './index.js';

let redis: Awaited<ReturnType<typeof anyRedis>>;
let driver: RedisDriver;
const clock = { time: 0, now: () => clock.time };

beforeAll(async () => {
  redis = await anyRedis();
  driver = new RedisDriver({ redis: redis.url, prefix: `vectors-${process.pid}`, clock });
  await driver.started;
});

afterAll(async () => {
  await driver.close();
  await redis.stop();
});

for (const [name, scenarios] of Object.entries(VECTORS)) {
  const algorithm = ALGORITHMS[name as keyof typeof VECTORS];
  runVectors(name, scenarios, () => driverExecutor(driver, algorithm, (now) => void (clock.time = now)));
}
