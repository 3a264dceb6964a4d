import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { HybridFleet } from '../support/hybrid-fleet.js';
import { startSentinels, type SentinelSet } from '../support/redis-servers.js';
import { expectOutage } from './bounds.js';

jest.setTimeout(90_000);

let set: SentinelSet;
let fleet: HybridFleet;

beforeEach(async () => {
  set = await startSentinels();
  const { sentinels, name } = set;
  fleet = await HybridFleet.open(() => ({ sentinels, name }));
});
afterEach(async () => {
  fleet.stop();
  await set.stop();
});

it('Sentinel makes another server the master', async () => {
  const report = await fleet.through(() => set.failOver());
  expectOutage(report);
});

it('the master is killed, and Sentinel replaces it', async () => {
  const report = await fleet.through(async () => {
    await set.servers[0]!.kill();
    await sleep(4_000);
  });
  expectOutage(report);
});
