import { jest } from '@jest/globals';
import { HybridDriver, RedisDriver, type BreakerChangeEvent } from 'nestjs-distlimit';
import { describeDriver } from 'nestjs-distlimit/testing';
import { startRedisContainer, type RedisContainer } from '../support/redis-container.js';
import { until } from '../support/redis-servers.js';
import { chargeOf } from '../unit/drivers/support.js';

jest.setTimeout(120_000);

let redis: RedisContainer;

beforeAll(async () => {
  redis = await startRedisContainer();
});
afterAll(() => redis?.stop());

describeDriver('the Redis driver, Redis in a container', {
  open: (clock) => new RedisDriver({ redis: redis.url, clock }),
});
describeDriver('the hybrid driver, Redis in a container', {
  open: (clock) => new HybridDriver({ redis: redis.url, clock }),
});

it('goes on in memory while the container is stopped, and is back in Redis once it is started', async () => {
  const changes: BreakerChangeEvent['current'][] = [];
  const prefix = 'stopped';
  const driver = new HybridDriver({
    redis: redis.url,
    prefix,
    coolOffMs: 200,
    onBreakerChange: ({ current }) => changes.push(current),
  });
  const afterwards = new RedisDriver({ redis: redis.url, prefix });
  const chargeFor = (subject: string) => chargeOf(subject, { limit: 10, window: '1h', algorithm: 'gcra' });
  const take = async (subject: string) => (await driver.decide([chargeFor(subject)]))[0]!;
  try {
    await driver.started;
    expect(await take('ann')).toMatchObject({ allowed: true, remaining: 9, servedBy: 'redis' });
    await redis.pause();
    for (const remaining of [8, 7]) {
      expect(await take('ann')).toMatchObject({ allowed: true, remaining, servedBy: 'fallback' });
    }
    expect(driver.status().breaker).toBe('open');
    await redis.goOn();
    await until(() => driver.status().breaker === 'closed');
    expect(changes[0]).toBe('open');
    expect(changes.slice(-3)).toEqual(['half-open', 'recovering', 'closed']);
    expect(await take('bob')).toMatchObject({ allowed: true, remaining: 9, servedBy: 'redis' });
    // Redis knows of all three now, also of the first, if it has lost that.
    await until(() => afterwards.connection.state === 'ready');
    expect(await afterwards.peek(chargeFor('ann'))).toMatchObject({ remaining: 7 });
  } finally {
    await Promise.all([driver.close(), afterwards.close()]);
  }
});
