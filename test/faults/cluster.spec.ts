import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { HybridFleet, SUBJECT } from '../support/hybrid-fleet.js';
import { startCluster, type RedisCluster } from '../support/redis-servers.js';
import { expectHealthy, expectOutage } from './bounds.js';

jest.setTimeout(90_000);

let cluster: RedisCluster;
let fleet: HybridFleet;

beforeEach(async () => {
  cluster = await startCluster();
  const { startupNodes } = cluster;
  fleet = await HybridFleet.open(() => ({ nodes: startupNodes }));
});
afterEach(async () => {
  fleet.stop();
  await cluster.stop();
});

it('a master of a cluster is killed, and its replica takes over', async () => {
  await cluster.failOverSoon();
  const master = await cluster.masterOf(SUBJECT);
  const report = await fleet.through(async () => {
    await master.kill();
    await sleep(4_000);
  });
  expectOutage(report);
});

it('a slot is moved to another master', async () => {
  const report = await fleet.through(() => cluster.moveSlot(SUBJECT, () => sleep(3_000)));
  expectOutage(report);
});

it('a node of a cluster has no scripts', async () => {
  const master = await cluster.masterOf(SUBJECT);
  const report = await fleet.through(async () => {
    await master.client.script('FLUSH');
  }, 1_500);
  expectHealthy(report);
});
