import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { HOURLY_LIMIT, HybridFleet, INSTANCES } from '../support/hybrid-fleet.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';
import { expectFull, expectHealthy, expectOutage } from './bounds.js';

jest.setTimeout(90_000);

let server: RedisServer;
let fleet: HybridFleet;

beforeEach(async () => {
  server = await startRedis();
  fleet = await HybridFleet.open(() => server.url, { expectedInstances: INSTANCES });
});
afterEach(async () => {
  fleet.stop();
  await server.stop();
});

it('Redis is killed, and comes back empty', async () => {
  const report = await fleet.through(async () => {
    await server.kill();
    await sleep(4_000);
    await server.restart();
  });
  expectOutage(report);
});

it('Redis is killed and back at once, empty', async () => {
  const report = await fleet.through(async () => {
    await server.kill();
    await server.restart();
  });
  expectOutage(report);
});

it('Redis is frozen for three seconds', async () => {
  const report = await fleet.through(async () => {
    server.freeze();
    await sleep(3_000);
    server.resume();
  });
  expectOutage(report);
});

it('clients are paused for three seconds', async () => {
  const report = await fleet.through(async () => {
    await server.client.call('CLIENT', 'PAUSE', '3000', 'ALL');
    await sleep(3_000);
  });
  expectOutage(report);
});

it('scripts are flushed', async () => {
  const report = await fleet.through(async () => {
    await server.client.script('FLUSH');
  }, 1_500);
  expectHealthy(report);
});

it('all data is flushed', async () => {
  const report = await fleet.through(async () => {
    await server.client.flushall();
  }, 4_000);
  expectHealthy(report);
});

it('the password is wrong', async () => {
  const report = await fleet.through(async () => {
    await server.client.config('SET', 'requirepass', 'changed');
    await server.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(3_000);
    await server.client.config('SET', 'requirepass', '');
  });
  expectOutage(report);
});

it('the memory is full', async () => {
  const report = await fleet.through(async () => {
    await server.client.config('SET', 'maxmemory', '1');
    await sleep(3_000);
    await server.client.config('SET', 'maxmemory', '0');
  });
  expectOutage(report);
});

it('an instance leaves during the outage, and another starts', async () => {
  const report = await fleet.through(async () => {
    await server.kill();
    await sleep(1_000);
    await fleet.kill(3);
    await fleet.send(await fleet.start());
    await sleep(3_000);
    await server.restart();
  });
  // Who starts then knows nothing of the hour that has begun, and takes its share of all of it.
  expectOutage(
    report,
    { hourly: 1.1 * HOURLY_LIMIT + HOURLY_LIMIT / INSTANCES },
    report.breaker.slice(0, INSTANCES),
  );
});

it('all instances start while there is no Redis', async () => {
  fleet.stop();
  await server.kill();
  fleet = await HybridFleet.start(() => server.url, { expectedInstances: INSTANCES });
  const report = await fleet.through(() => server.restart());
  expectOutage(report);
});

it('Redis comes and goes for thirty seconds', async () => {
  const report = await fleet.through(async () => {
    for (let i = 0; i < 15; i++) {
      server.freeze();
      await sleep(400 + 50 * i);
      server.resume();
      await sleep(1_600 - 50 * i);
    }
  });
  expectOutage(report);
});

it('the event loop is blocked for 300 ms, and Redis is well', async () => {
  const report = await fleet.through(async () => {
    for (let i = 0; i < 3; i++) {
      // Nobody else's subject: a denial that is remembered would not ask Redis.
      const given = { ms: 300, policy: 'short', subject: `blocked ${i}` };
      await Promise.all(fleet.instances.map((instance) => instance.tell('block', given)));
      await sleep(300);
    }
  }, 1_500);
  expectHealthy(report);
  expect(report.slowestMs).toBeGreaterThanOrEqual(300);
});

// Also shows that these tests see a fleet that lets through too much.
it("each instance lets through the whole limit, by fallback: 'full'", async () => {
  fleet.stop();
  fleet = await HybridFleet.open(() => server.url, { fallback: 'full' });
  const report = await fleet.through(async () => {
    await server.kill();
    await sleep(3_000);
    await server.restart();
  }, 2_000);
  expectFull(report);
});
