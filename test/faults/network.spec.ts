import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { HOURLY_LIMIT, HybridFleet, INSTANCES, LIMIT, SHARE } from '../support/hybrid-fleet.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { expectOutage } from './bounds.js';

jest.setTimeout(90_000);

let server: RedisServer;
let proxies: TcpProxy[];
let fleet: HybridFleet;

beforeEach(async () => {
  server = await startRedis();
  const { port } = server;
  proxies = await Promise.all(Array.from({ length: INSTANCES }, () => TcpProxy.open(port)));
  fleet = await HybridFleet.open((instance) => proxies[instance]!.url);
});
afterEach(async () => {
  fleet.stop();
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await server.stop();
});

const each = (change: (proxy: TcpProxy) => void) => proxies.forEach(change);

it('replies come after the deadline', async () => {
  const report = await fleet.through(async () => {
    each((proxy) => proxy.delay(300));
    await sleep(3_000);
    each((proxy) => proxy.heal());
  });
  expectOutage(report);
});

it('connections are reset in the middle of a reply', async () => {
  const report = await fleet.through(async () => {
    each((proxy) => proxy.cutReplies());
    await sleep(500);
    each((proxy) => proxy.heal());
  });
  expectOutage(report);
});

it('one instance is cut off, and the others are not', async () => {
  const report = await fleet.through(async () => {
    proxies[3]!.silence();
    await sleep(4_000);
    proxies[3]!.heal();
  });
  // The others can't tell it from one that has ended, and share the whole limit in Redis.
  const most = { spread: LIMIT + SHARE, hourly: HOURLY_LIMIT + HOURLY_LIMIT / INSTANCES };
  expectOutage(report, most, report.breaker.slice(3));
  expect(report.breaker.slice(0, 3)).toEqual(['', '', '']);
});
