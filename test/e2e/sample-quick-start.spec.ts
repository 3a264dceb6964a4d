import { RateLimiterService } from 'nestjs-distlimit';
import { AppModule } from '../../sample/01-quick-start/src/app.module.js';
import { trySome } from '../../sample/01-quick-start/src/try-some.js';
import { closeApps, startApp, statuses, type RunningApp } from '../support/http-app.js';

describe('sample 01-quick-start', () => {
  let app: RunningApp;
  const redisUrl = process.env.REDIS_URL;

  beforeEach(async () => {
    // With a Redis it would find what was counted before.
    delete process.env.REDIS_URL;
    app = await startApp('express', { imports: [AppModule] });
  });
  afterEach(async () => {
    await closeApps();
    if (redisUrl !== undefined) process.env.REDIS_URL = redisUrl;
  });

  it('names the port in each of three commands', () => {
    const text = trySome(4321, app.app.get(RateLimiterService).status());
    expect(text.match(/^ {2}curl .*http:\/\/localhost:4321\/.*$/gm)).toHaveLength(3);
    expect(text).toContain('Counters are in memory;');
  });

  it('says how much is left of the named policy', async () => {
    const { status, headers, body } = await app.call('/cats');
    expect([status, body]).toEqual([200, '["Tom","Kitty"]']);
    expect(headers.get('ratelimit-policy')).toBe('"api";q=20;w=60');
    expect(headers.get('ratelimit')).toMatch(/^"api";r=19;t=\d+$/);
  });

  it('denies the fourth search in ten seconds', async () => {
    expect(await statuses(() => app.call('/cats/search'), 4)).toEqual([200, 200, 200, 429]);
    expect((await app.call('/cats')).status).toBe(200);
  });

  it('blocks an address after three failed logins', async () => {
    const login = (password: string) =>
      app.call('/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ password }),
      });
    // What succeeds is not counted.
    expect(await statuses(() => login('secret'), 5)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(() => app.call('/login', { method: 'POST' }), 3)).toEqual([401, 401, 401]);
    const denied = await login('secret');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('120');
  });

  it('limits the method of the service, for each customer', async () => {
    expect(await statuses(() => app.call('/reports/acme'), 3)).toEqual([200, 200, 429]);
    expect((await app.call('/reports/zenith')).status).toBe(200);
  });
});
