import type { ChildProcess } from 'node:child_process';
import { askAll, libraryProcesses, type LibraryProcesses } from '../support/library-processes.js';
import { startCluster, startRedis, type RedisCluster, type RedisServer } from '../support/redis-servers.js';

const PROCESSES = 4;
const CALLS = 1_000;

let processes: LibraryProcesses;
let children: ChildProcess[];
let server: RedisServer;
let cluster: RedisCluster;
let runs = 0;

beforeAll(async () => {
  processes = libraryProcesses('consumer.mjs');
  children = Array.from({ length: PROCESSES }, () => processes.start());
  [server, cluster] = await Promise.all([startRedis(), startCluster()]);
}, 60_000);
afterAll(async () => {
  processes.stop();
  await Promise.all([server.stop(), cluster.stop()]);
});

/** How many calls passed of all processes together, by subject. */
async function consumeEverywhere(task: { policy: object; subjects: string[]; cost: number; redis: unknown }) {
  await askAll(children, { ...task, calls: CALLS, prefix: `concurrency-${++runs}` });
  const sums: Record<string, number> = {};
  for (const each of await askAll<Record<string, number>>(children, 'go')) {
    for (const [subject, count] of Object.entries(each)) sums[subject] = (sums[subject] ?? 0) + count;
  }
  return sums;
}

describe.each([
  ['one server', () => server.url],
  ['a cluster', () => ({ nodes: cluster.startupNodes })],
] as const)('four processes with 1,000 calls each on %s', (_where, redis) => {
  it.each([
    [5, 1, 'fixed-window'],
    [100, 1, 'sliding-window-log'],
    [100, 1, 'token-bucket'],
    [10_000, 4, 'sliding-window-counter'],
  ] as const)(
    'are admitted exactly the limit of %i (cost %i, %s)',
    async (limit, cost, algorithm) => {
      const policy = { limit, window: '30d', algorithm };
      expect(await consumeEverywhere({ policy, subjects: ['all'], cost, redis: redis() })).toEqual({
        all: limit / cost,
      });
    },
    30_000,
  );

  it('are admitted exactly the limit of each subject', async () => {
    const policy = { limit: 50, window: '30d', algorithm: 'fixed-window' };
    const subjects = Array.from({ length: 20 }, (_, i) => `subject ${i}`);
    expect(await consumeEverywhere({ policy, subjects, cost: 1, redis: redis() })).toEqual(
      Object.fromEntries(subjects.map((subject) => [subject, 50])),
    );
  }, 60_000);
});
