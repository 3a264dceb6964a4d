import { connect } from 'node:net';
import { Controller, Get, Post } from '@nestjs/common';
import { RateLimit, RateLimiterService, RateLimitModule, subjectOf } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp } from '../support/http-app.js';

const FIXED = { window: '1h', algorithm: 'fixed-window' } as const;

@Controller()
class Target {
  @Get('by-header')
  @RateLimit('by-header')
  byHeader() {
    return 'ok';
  }
  @Get('by-ip')
  @RateLimit('by-ip')
  byIp() {
    return 'ok';
  }
  @Post('login')
  @RateLimit('by-body')
  login() {
    return 'ok';
  }
}

@Controller()
class Headed {
  @Get()
  @RateLimit('by-header')
  get() {
    return 'ok';
  }
}

afterEach(closeApps);

it.each(['memory', 'hashed'])('knows a long subject again in the service, %s', async (kind) => {
  const { app, call } = await startApp('express', {
    imports: [
      RateLimitModule.forRoot({
        clock: new ManualClock(),
        ...(kind === 'hashed' && { hashKeys: 'a secret of some length' }),
        policies: {
          'by-header': { limit: 1, ...FIXED, key: ['header:x-key', 'header:x-key', 'header:x-key'] },
        },
      }),
    ],
    controllers: [Headed],
  });
  const value = 'k'.repeat(120);
  const statuses = async () => [(await call('/', { headers: { 'x-key': value } })).status];
  expect([await statuses(), await statuses()]).toEqual([[200], [429]]);
  const part = subjectOf.header('x-key', value);
  const subject = subjectOf.all(part, part, part);
  expect(subject.length).toBeGreaterThan(200);
  const limits = app.get(RateLimiterService);
  expect(await limits.peek('by-header', subject)).toMatchObject({ allowed: false, remaining: 0 });
  await limits.reset('by-header', subject);
  expect(await statuses()).toEqual([200]);
});

describe.each(ADAPTERS)('hostile input on %s', (adapter) => {
  const start = async (trustedProxies?: string) => {
    const started = await startApp(adapter, {
      imports: [
        RateLimitModule.forRoot({
          clock: new ManualClock(),
          ...(trustedProxies !== undefined && { trustedProxies }),
          policies: {
            'by-header': { limit: 1, ...FIXED, key: 'header:x-key' },
            'by-ip': { limit: 3, ...FIXED },
            'by-body': { limit: 2, ...FIXED, key: ({ request }) => request.body?.name },
          },
        }),
      ],
      controllers: [Target],
    });
    return { ...started, service: started.app.get(RateLimiterService) };
  };

  it('does not believe a client that names an address of its own', async () => {
    const { call } = await start();
    const seen = [];
    for (let i = 0; i < 5; i++) {
      const headers = {
        'x-forwarded-for': `203.0.113.${i}`,
        forwarded: `for=203.0.113.${i}`,
        'x-real-ip': `1.1.1.${i}`,
      };
      seen.push((await call('/by-ip', { headers })).status);
    }
    expect(seen).toEqual([200, 200, 200, 429, 429]);
  });

  it('does not let a client behind a trusted proxy choose its address', async () => {
    const { call } = await start('loopback');
    const seen = [];
    for (let i = 0; i < 5; i++) {
      seen.push((await call('/by-ip', { headers: { 'x-forwarded-for': `6.6.6.${i}, 203.0.113.9` } })).status);
    }
    expect(seen).toEqual([200, 200, 200, 429, 429]);
  });

  it('gives odd keys buckets of their own, and never crashes', async () => {
    const { call, service } = await start();
    const keys = [
      '__proto__',
      'constructor',
      '{a}',
      '{b}:x',
      'a|b',
      'a%7Cb',
      'ip:127.0.0.1',
      'global',
      'é',
      'x'.repeat(8_000),
    ];
    for (const key of keys) {
      const headers = { 'x-key': key };
      expect([key.slice(0, 20), (await call('/by-header', { headers })).status]).toEqual([
        key.slice(0, 20),
        200,
      ]);
      expect((await call('/by-header', { headers })).status).toBe(429);
    }
    expect(service.status().keys).toBe(keys.length);
    // Somebody who sends no key at all counts for the address, and shares it with nobody who merely says so.
    expect((await call('/by-header')).status).toBe(200);
    expect((await call('/by-header')).status).toBe(429);
  });

  it('keeps everybody out of a shared bucket of objects', async () => {
    const { call, service } = await start();
    const login = (name: unknown) =>
      call('/login', {
        method: 'POST',
        body: JSON.stringify({ name }),
        headers: { 'content-type': 'application/json' },
      });
    const seen = [];
    for (const name of [{}, [], null, '', { toString: 'x' }]) seen.push((await login(name)).status);
    // All of them count for the address, which may call twice.
    expect(seen).toEqual([201, 201, 429, 429, 429]);
    expect((await service.peek('by-body', 'key:[object Object]')).remaining).toBe(2);
    expect((await service.peek('by-body', 'key:undefined')).remaining).toBe(2);
    expect((await service.peek('by-body', 'ip:127.0.0.1')).remaining).toBe(0);
    expect((await login('ann')).status).toBe(201);
  });

  it('puts nothing of a caller into the headers of an answer', async () => {
    const { app } = await start();
    const { port } = app.getHttpServer().address() as { port: number };
    const raw = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(
          'GET /by-header HTTP/1.1\r\nHost: x\r\nX-Key: a%0d%0aSet-Cookie:x=1;"\\\r\nConnection: close\r\n\r\n',
        );
      });
      let text = '';
      socket.setEncoding('latin1');
      socket.on('data', (chunk: string) => (text += chunk));
      socket.on('end', () => resolve(text));
      socket.on('error', reject);
    });
    expect(raw).toContain('"by-header";r=0');
    expect(raw.toLowerCase()).not.toContain('set-cookie');
  });
});
