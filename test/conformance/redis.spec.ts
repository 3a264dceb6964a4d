import { RedisDriver } from 'nestjs-distlimit';
import { describeDriver } from 'nestjs-distlimit/testing';
import { anyRedis } from '../support/redis-servers.js';

let redis: Awaited<ReturnType<typeof anyRedis>>;

beforeAll(async () => {
  redis = await anyRedis();
});
afterAll(() => redis.stop());

describeDriver('the Redis driver', { open: (clock) => new RedisDriver({ redis: redis.url, clock }) });
