import { HybridDriver } from 'nestjs-distlimit';
import { describeDriver } from 'nestjs-distlimit/testing';
import { anyRedis } from '../support/redis-servers.js';

let redis: Awaited<ReturnType<typeof anyRedis>>;

beforeAll(async () => {
  redis = await anyRedis();
});
afterAll(() => redis.stop());

describeDriver('the hybrid driver', { open: (clock) => new HybridDriver({ redis: redis.url, clock }) });
