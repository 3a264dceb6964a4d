import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import { jest } from '@jest/globals';
import { RateLimiterService, subjectOf } from 'nestjs-distlimit';
import { start, type RunningGateway } from '../../sample/02-api-gateway/src/start.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';

jest.setTimeout(30_000);

interface Call {
  readonly key?: string;
  readonly forwardedFor?: string;
  /** The address to call from. */
  readonly from?: string;
  readonly body?: string;
}

describe('sample 02-api-gateway', () => {
  let server: RedisServer;
  let gateway: RunningGateway;
  let limits: RateLimiterService;
  let run = 0;

  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    gateway = await start(0, { redis: server.url, prefix: `gateway-${++run}` });
    limits = gateway.app.get(RateLimiterService);
  });
  afterEach(() => gateway.close());

  const call = (path: string, { key, forwardedFor, from = '127.0.0.1', body }: Call = {}) =>
    new Promise<{ status: number; headers: Record<string, unknown>; body: Record<string, unknown> }>(
      (resolve, reject) => {
        const headers = {
          ...(key !== undefined && { 'x-api-key': key }),
          ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }),
        };
        const options = { method: body === undefined ? 'GET' : 'POST', headers, localAddress: from };
        const sent = request(`http://127.0.0.1:${new URL(gateway.url).port}${path}`, options, (answer) => {
          json(answer)
            .then((read) => ({
              status: answer.statusCode!,
              headers: answer.headers,
              body: read as Record<string, unknown>,
            }))
            .then(resolve, reject);
        });
        sent.on('error', reject).end(body);
      },
    );
  const statuses = async (times: number, how?: Call, path = '/orders') => {
    const seen: number[] = [];
    for (let i = 0; i < times; i++) seen.push((await call(path, how)).status);
    return seen;
  };
  const remaining = async (policy: string, subject: string) => (await limits.peek(policy, subject)).remaining;

  it('passes path, query and body on, and says what is left', async () => {
    expect(limits.status()).toMatchObject({ driver: 'hybrid', breaker: 'closed' });
    const { status, headers, body } = await call('/orders/42?full=yes', { body: 'x'.repeat(200_000) });
    expect(status).toBe(200);
    expect(body).toEqual({
      service: 'orders',
      method: 'POST',
      url: '/orders/42?full=yes',
      bytes: 200_000,
      forwardedFor: expect.stringMatching(/127\.0\.0\.1, (::ffff:)?127\.0\.0\.1$/),
    });
    expect(headers['ratelimit-policy']).toBe('"plan";q=5;w=60, "address";q=300;w=60, "service";q=200;w=1');
    expect((await call('/stock')).body).toMatchObject({ service: 'stock', url: '/stock' });
  });

  it('gives the numbers of the plan, to each customer for themselves', async () => {
    expect(await statuses(11, { key: 'key-of-fred' })).toEqual([...Array<number>(10).fill(200), 429]);
    expect(await statuses(12, { key: 'key-of-pia' })).toEqual(Array<number>(12).fill(200));
    expect((await call('/orders', { key: 'key-of-emma' })).headers['ratelimit']).toContain('"plan";r=999;');
  });

  it('counts made-up keys and made-up addresses for the address that the load balancer saw', async () => {
    expect(await statuses(4)).toEqual([200, 200, 200, 200]);
    expect(await statuses(1, { key: 'made-up-1', forwardedFor: '198.51.100.1' })).toEqual([200]);
    expect(await statuses(1, { key: 'made-up-2' })).toEqual([429]);
    expect(await statuses(1, { forwardedFor: '198.51.100.2' })).toEqual([429]);
    expect(await statuses(1, { forwardedFor: '198.51.100.2, 198.51.100.3' })).toEqual([429]);
    // Another client of the same load balancer.
    expect(await statuses(1, { from: '127.0.0.2' })).toEqual([200]);
  });

  it('decides customer, address and service together', async () => {
    await statuses(5);
    const denied = await call('/orders');
    expect(denied.status).toBe(429);
    expect(denied.body).toMatchObject({ 'violated-policies': ['plan'] });
    // The denied one took nothing from the address.
    expect(await remaining('address', 'ip:127.0.0.1')).toBe(295);

    await limits.block('service', subjectOf.route('/orders{/*path}'), '1m');
    expect((await call('/orders/7', { key: 'key-of-pia' })).body).toMatchObject({
      'violated-policies': ['service'],
    });
    expect(await remaining('plan', subjectOf.key('customer-pia'))).toBe(100);
    expect(await statuses(1, { key: 'key-of-pia' }, '/stock')).toEqual([200]);
  });

  it('answers 502 for a service that is away', async () => {
    await gateway.stopOrders();
    expect(await statuses(1)).toEqual([502]);
    expect(await statuses(1, {}, '/stock')).toEqual([200]);
  });

  it('counts in memory without Redis', async () => {
    await gateway.close();
    gateway = await start(0, { redis: undefined });
    expect(gateway.app.get(RateLimiterService).status().driver).toBe('memory');
    expect(await statuses(6)).toEqual([200, 200, 200, 200, 200, 429]);
  });
});
