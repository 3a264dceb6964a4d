import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { HybridFleet, type FleetReport } from '../support/hybrid-fleet.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';
import { expectBounds } from './bounds.js';

jest.setTimeout(60_000);

let server: RedisServer;
let fleet: HybridFleet;

beforeEach(async () => {
  server = await startRedis();
  fleet = await HybridFleet.open(() => server.url);
});
afterEach(async () => {
  fleet.stop();
  await server.stop();
});

/** Traffic before, during and after a fault. */
async function through(fault: () => Promise<void>, afterMs = 6_000): Promise<FleetReport> {
  await fleet.traffic();
  await sleep(2_700);
  await fault();
  await sleep(afterMs);
  return fleet.finish();
}

it('Redis is killed, and comes back empty', async () => {
  const report = await through(async () => {
    await server.kill();
    await sleep(4_000);
    await server.restart();
  });
  expectBounds('killed', report);
});

it('Redis is frozen for three seconds', async () => {
  const report = await through(async () => {
    server.freeze();
    await sleep(3_000);
    server.resume();
  });
  expectBounds('frozen', report);
});
