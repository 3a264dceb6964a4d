import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Metadata } from '@grpc/grpc-js';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { jest } from '@jest/globals';
import { denialIn } from '../../sample/03-microservices/src/denial.js';
import { FrontModule } from '../../sample/03-microservices/src/front.module.js';
import { outageIn } from '../../sample/03-microservices/src/outage.js';
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

  it('asks for a customer', async () => {
    await startWith(undefined);
    for (const path of ['/orders/7', '/prices/tea']) {
      const answer = await fetch(url + path);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining('x-customer') });
    }
  });

  for (const [path, stop] of [
    ['/orders/7', 'stopOrders'],
    ['/prices/tea', 'stopPrices'],
  ] as const) {
    it(`answers 503 on ${path} while the service is down, asked before or not, and the other goes on`, async () => {
      const other = path === '/orders/7' ? '/prices/tea' : '/orders/7';
      for (const callsBefore of [0, 1]) {
        await startWith(undefined);
        expect(await statuses(path, 'ann', callsBefore)).toEqual(Array(callsBefore).fill(200));
        await services[stop]();
        for (let i = 0; i < 3; i++) await expectOutage(await call(path, 'ann'));
        expect((await call(other, 'ann')).status).toBe(200);
        if (callsBefore === 0) await services.close();
      }
    });
  }

  for (const [what, onConnection] of [
    ['breaks calls off', (socket: Socket) => socket.once('data', () => socket.destroy())],
    ['is frozen', (socket: Socket) => socket.resume()],
  ] as const) {
    it(`answers 503 where a service ${what}`, async () => {
      const sockets: Socket[] = [];
      const service = createServer((socket) => {
        sockets.push(socket);
        onConnection(socket);
      }).listen(0, '127.0.0.1');
      await once(service, 'listening');
      const { port } = service.address() as AddressInfo;
      const front = await NestFactory.create(
        FrontModule.with({
          orders: { host: '127.0.0.1', port },
          prices: { package: 'prices', protoPath: PROTO, url: `127.0.0.1:${port}` },
        }),
      );
      services = {
        front,
        stopOrders: async () => {},
        stopPrices: async () => {},
        close: async () => {
          await front.close();
          for (const socket of sockets) socket.destroy();
          service.close();
        },
      };
      await front.listen(0);
      url = `http://127.0.0.1:${(front.getHttpServer().address() as AddressInfo).port}`;
      await expectOutage(await call('/orders/7', 'ann'));
      await expectOutage(await call('/prices/tea', 'ann'));
    });
  }

  it('takes nothing for an outage but what is one, and passes on a time that the service says', async () => {
    await startWith(undefined);
    expect(outageIn({ code: 'SERVICE_UNAVAILABLE', message: 'no', retryAfterMs: 500 })).toEqual({
      retryAfterMs: 500,
    });
    const metadata = new Metadata();
    metadata.set('retry-after-ms', '700');
    expect(outageIn({ code: 14, metadata })).toEqual({ retryAfterMs: 700 });
    // The second is what a service's handler has thrown: plain data.
    for (const other of [
      new Error('no'),
      { status: 'error', message: 'Connection closed' },
      { code: 8 },
      undefined,
    ])
      expect(outageIn(other)).toBeUndefined();
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
  await expectProblem(answer, {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Too Many Requests',
    status: 429,
    detail: expect.stringContaining(`Limit of ${limit} requests per minute exceeded`),
  });
}

async function expectOutage(answer: Response): Promise<void> {
  expect(answer.status).toBe(503);
  expect([answer.headers.get('retry-after'), answer.headers.get('cache-control')]).toEqual([
    null,
    'no-store',
  ]);
  await expectProblem(answer, {
    type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    title: 'Service Unavailable',
    status: 503,
    detail: expect.stringContaining('not available'),
  });
}

async function expectProblem(answer: Response, problem: object): Promise<void> {
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(await answer.json()).toEqual(problem);
}
