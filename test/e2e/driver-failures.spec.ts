import { Controller, Get, HttpException, UseGuards, type CanActivate } from '@nestjs/common';
import {
  MemoryDriver,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  type OnUnavailable,
  type RateLimitModuleOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp } from '../support/http-app.js';
import { failing, wrapped } from '../support/wrapped-driver.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const IP = 'ip:127.0.0.1';
const AWAY = new Error('the store is away');

let memory: MemoryDriver;

beforeEach(() => {
  memory = new MemoryDriver({ clock: new ManualClock() });
});

afterEach(async () => {
  await closeApps();
  await memory.close();
});

describe.each(ADAPTERS)('on %s', (adapter) => {
  async function start(controller: new () => object, options: RateLimitModuleOptions) {
    const { app, call } = await startApp(adapter, {
      imports: [RateLimitModule.forRoot({ clock: new ManualClock(), ...options })],
      controllers: [controller],
    });
    return { call, service: app.get(RateLimiterService) };
  }

  it.each<[OnUnavailable, number]>([
    ['allow', 200],
    ['deny', 503],
    ['throw', 500],
    ['fallback', 500],
  ])('a driver that fails answers by onUnavailable %p with %i', async (onUnavailable, status) => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('api', 'trial')
      list() {
        return [];
      }
    }
    const { call } = await start(Cats, {
      driver: wrapped(memory, failing(AWAY, 'decide')),
      policies: {
        api: { limit: 1, ...FIXED, onUnavailable },
        // What is only tried has no say in what becomes of the call.
        trial: { limit: 1, ...FIXED, mode: 'shadow' },
      },
    });
    const { status: got, headers, body } = await call('/cats');
    expect(got).toBe(status);
    if (status !== 503) return;
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(headers.get('retry-after')).toBe('1');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(JSON.parse(body)).toMatchObject({ status: 503, 'violated-policies': ['api'] });
  });

  it('a denial stays one where the refund of what was charged before it fails', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('early', 'late')
      list() {
        return [];
      }
    }
    const errors: unknown[] = [];
    const { call } = await start(Cats, {
      driver: wrapped(memory, { refund: () => Promise.reject(AWAY) }),
      observers: [{ driverError: ({ error }) => void errors.push(error) }],
      policies: { early: { limit: 9, ...FIXED }, late: { limit: 0, ...FIXED, enforceAt: 'interceptor' } },
    });
    expect((await call('/cats')).status).toBe(429);
    expect(errors).toEqual([AWAY]);
  });

  it.each(['throws', 'rejects'])(
    'a key function that %s after the guards fails the call, and what it was charged is given back',
    async (how) => {
      class NoTenant extends HttpException {}
      @Controller()
      class Cats {
        @Get('cats')
        @RateLimit('early', {
          limit: 9,
          ...FIXED,
          enforceAt: 'interceptor',
          key: () => {
            const error = new NoTenant('no tenant', 500);
            if (how === 'rejects') return Promise.reject(error);
            throw error;
          },
        })
        list() {
          return [];
        }
      }
      const { call, service } = await start(Cats, { policies: { early: { limit: 9, ...FIXED } } });
      expect((await call('/cats')).status).toBe(500);
      expect((await service.peek('early', IP)).remaining).toBe(9);
    },
  );

  it('a rejection by another guard gives nothing back', async () => {
    class Nobody implements CanActivate {
      canActivate() {
        return false;
      }
    }
    @Controller()
    class Cats {
      @Get('cats')
      @UseGuards(Nobody)
      @RateLimit('early')
      list() {
        return [];
      }
    }
    const { call, service } = await start(Cats, { policies: { early: { limit: 9, ...FIXED } } });
    expect((await call('/cats')).status).toBe(403);
    expect((await service.peek('early', IP)).remaining).toBe(8);
  });
});
