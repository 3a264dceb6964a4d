import 'reflect-metadata';
import { jest } from '@jest/globals';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppModule } from '../../sample/05-runtime-policies/src/app.module.js';
import { ADAPTERS, closeApps, startApp, statuses, type RunningApp } from '../support/http-app.js';
import { startRedis, until, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(30_000);

describe.each(ADAPTERS)('sample 05-runtime-policies on %s', (adapter) => {
  let redis: RedisServer;
  let directory: string;
  let file: string;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    await redis.client.flushall();
    directory = mkdtempSync(join(tmpdir(), 'distlimit-sample-'));
    file = join(directory, 'rate-limits.yaml');
    copyFileSync(new URL('../../sample/05-runtime-policies/rate-limits.yaml', import.meta.url), file);
  });
  afterEach(async () => {
    await closeApps();
    rmSync(directory, { recursive: true, force: true });
  });
  afterAll(() => redis.stop());

  const start = (url: string | undefined = redis.url) =>
    startApp(adapter, { imports: [AppModule.with({ file, redis: url })] });
  const cats = (sample: RunningApp, tenant: string) =>
    sample.call('/cats', { headers: { 'x-tenant': tenant } });
  const change = (sample: RunningApp, body: object, token = 'change-me') =>
    sample.call('/limits/cats', {
      method: 'PATCH',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const limit = async (sample: RunningApp) =>
    (JSON.parse((await sample.call('/limits')).body) as { limit: number }[])[0]!.limit;

  it('follows the file', async () => {
    const sample = await start();
    expect(await statuses(() => cats(sample, 'small'), 6)).toEqual([200, 200, 200, 200, 200, 429]);
    writeFileSync(file, readFileSync(file, 'utf8').replace('${CATS_LIMIT:-5}', '7'));
    await until(async () => (await limit(sample)) === 7);
    expect(await statuses(() => cats(sample, 'small'), 3)).toEqual([200, 200, 429]);
  });

  it('gives tenants the numbers of their plans', async () => {
    const sample = await start();
    for (const [tenant, quota] of [
      ['acme', 1_000],
      ['zenith', 50],
      ['small', 5],
    ] as const) {
      expect((await cats(sample, tenant)).headers.get('ratelimit-policy')).toBe(`"cats";q=${quota};w=60`);
    }
  });

  it('changes the whole fleet, for who has the token', async () => {
    const [one, two] = [await start(), await start()];
    expect((await change(one, { limit: 8 }, 'guess')).status).toBe(401);
    expect(JSON.parse((await change(one, { limit: 8 })).body)).toEqual({
      name: 'cats',
      limit: 8,
      windowMs: 60_000,
    });
    await until(async () => (await limit(two)) === 8);
    const wrong = await change(one, { limit: -8 });
    expect([wrong.status, wrong.body]).toEqual([422, expect.stringContaining('RL_INVALID_LIMIT')]);
    expect(await limit(one)).toBe(8);
  });
});

it('sample 05-runtime-policies has no fleet without Redis', async () => {
  const file = new URL('../../sample/05-runtime-policies/rate-limits.yaml', import.meta.url).pathname;
  const sample = await startApp('express', { imports: [AppModule.with({ file, redis: undefined })] });
  const answer = await sample.call('/limits/cats', {
    method: 'PATCH',
    headers: { authorization: 'Bearer change-me', 'content-type': 'application/json' },
    body: '{"limit":8}',
  });
  await closeApps();
  expect([answer.status, answer.body]).toEqual([422, expect.stringContaining('RL_NO_FLEET_SOURCE')]);
});
