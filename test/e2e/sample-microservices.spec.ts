import { fileURLToPath } from 'node:url';
import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { denialIn } from '../../sample/03-microservices/src/denial.js';
import { start, type RunningServices } from '../../sample/03-microservices/src/start.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(30_000);

const PROTO = fileURLToPath(new URL('../../sample/03-microservices/prices.proto', import.meta.url));

describe('sample 03-microservices', () => {
  let server: RedisServer;
  let services: RunningServices;
  let url: string;
  let run = 0;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    server = await startRedis();
  });
  afterAll(() => server.stop());
  afterEach(() => services.close());

  const startWith = async (redis: string | undefined) => {
    services = await start(0, PROTO, { redis, prefix: `microservices-${++run}` });
    const { port } = services.front.getHttpServer().address() as { port: number };
    url = `http://127.0.0.1:${port}`;
  };
  const call = (path: string, customer: string) => fetch(url + path, { headers: { 'x-customer': customer } });
  const statuses = async (path: string, customer: string, times: number) => {
    const seen: number[] = [];
    for (let i = 0; i < times; i++) seen.push((await call(path, customer)).status);
    return seen;
  };

  for (const store of ['Redis', 'memory'] as const) {
    it(`answers 429 for what a service on TCP has denied, counted in ${store}`, async () => {
      await startWith(store === 'Redis' ? server.url : undefined);
      expect(await (await call('/orders/7', 'ann')).json()).toEqual({ id: '7', state: 'shipped' });
      expect(await statuses('/orders/7', 'ann', 3)).toEqual([200, 200, 429]);
      await expectDenial(await call('/orders/7', 'ann'), 3);
      // The other service, and another customer, are not touched.
      expect(await statuses('/prices/tea', 'ann', 1)).toEqual([200]);
      expect(await statuses('/orders/7', 'bob', 1)).toEqual([200]);
    });

    it(`answers 429 for what a service on gRPC has denied, counted in ${store}`, async () => {
      await startWith(store === 'Redis' ? server.url : undefined);
      expect(await (await call('/prices/tea', 'ann')).json()).toEqual({ sku: 'tea', cents: 499 });
      expect(await statuses('/prices/tea', 'ann', 2)).toEqual([200, 429]);
      await expectDenial(await call('/prices/tea', 'ann'), 2);
      expect(await statuses('/orders/7', 'ann', 1)).toEqual([200]);
      expect(await statuses('/prices/tea', 'bob', 1)).toEqual([200]);
    });
  }

  it('asks for a customer, and leaves other failures what they are', async () => {
    await startWith(undefined);
    expect((await fetch(`${url}/orders/7`)).status).toBe(400);
    expect((await fetch(`${url}/prices/tea`)).status).toBe(400);
    await services.stopOrders();
    const failed = await call('/orders/7', 'ann');
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([500, null]);
  });

  it('says nothing of a time where the service says none', async () => {
    await startWith(undefined);
    expect(denialIn({ code: 'TOO_MANY_REQUESTS', message: 'no', retryAfterMs: null })).toEqual({
      message: 'no',
      retryAfterMs: undefined,
    });
    expect(denialIn({ code: 8, details: 'no' })).toEqual({ message: 'no', retryAfterMs: undefined });
    expect([denialIn({ code: 14 }), denialIn(new Error('no')), denialIn(undefined)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

async function expectDenial(answer: Response, limit: number): Promise<void> {
  expect(answer.status).toBe(429);
  // A sliding window is free of what was used in it after two windows at most.
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(120);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(await answer.json()).toMatchObject({
    statusCode: 429,
    message: expect.stringContaining(`Limit of ${limit} requests per minute exceeded`),
  });
}
