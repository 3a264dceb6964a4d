import 'reflect-metadata';
import { jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { AppModule } from '../../sample/04-scheduled-jobs/src/app.module.js';
import { Jobs } from '../../sample/04-scheduled-jobs/src/jobs.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(30_000);

describe('sample 04-scheduled-jobs', () => {
  let redis: RedisServer;
  const instances: TestingModule[] = [];
  const runs: { line: string; at: number }[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    const journal: string[] = [];
    journal.push = (line) => runs.push({ line, at: Date.now() });
    for (const instance of ['A', 'B']) {
      const testing = await Test.createTestingModule({
        imports: [AppModule.with({ instance, journal, redis: redis.url })],
      })
        .setLogger(false as never)
        .compile();
      instances.push(await testing.init());
    }
  });
  afterAll(async () => {
    await Promise.all(instances.map((instance) => instance.close()));
    await redis.stop();
  });

  it('runs the report once in two seconds, on whichever instance', async () => {
    const reports = () => runs.filter(({ line }) => line.startsWith('report by'));
    await until(() => reports().length >= 4);
    // Windows are those of Redis, whose clock is this machine's.
    const windows = reports().map(({ at }) => Math.floor(at / 2_000));
    // A run at the very end of a window may be noted after it.
    for (let i = 2; i < windows.length; i++) expect(windows[i]! - windows[i - 2]!).toBeGreaterThanOrEqual(1);
    expect(windows.at(-1)! - windows[0]!).toBeGreaterThanOrEqual(windows.length - 2);
  });

  it('has calls to the partner wait their turn', async () => {
    const sent = () => runs.filter(({ line }) => line.includes('sent by'));
    const calls = instances.flatMap((instance) =>
      [1, 2].map((n) => instance.get(Jobs).callPartner(`order ${n}`)),
    );
    await Promise.all(calls);
    expect(sent()).toHaveLength(4);
    // The first goes at once, and three wait a second each, less what two clocks differ by.
    expect(sent().at(-1)!.at - sent()[0]!.at).toBeGreaterThanOrEqual(3_000 - 50);
  });
});
