import {
  applyDecorators,
  Controller,
  Get,
  HttpException,
  Injectable,
  Module,
  Param,
  Post,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  RateLimitVerdict,
  SkipRateLimit,
  subjectOf,
  type RateLimitModuleOptions,
  type Verdict,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp, statuses } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const IP = 'ip:127.0.0.1';

/** Lets in whoever sends `x-user`, and puts the user on the request. */
@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    const id = request.headers['x-user'];
    if (id === undefined) throw new HttpException('who are you', 401);
    request.user = { id };
    return true;
  }
}

const NeedsUser = () => applyDecorators(UseGuards(AuthGuard), SetMetadata('needs-user', true));

afterEach(closeApps);

describe.each(ADAPTERS)('the guard on %s', (adapter) => {
  const clock = () => new ManualClock();

  async function start(
    controllers: (new (...args: never[]) => object)[],
    options: RateLimitModuleOptions = {},
  ) {
    const started = await startApp(adapter, {
      imports: [RateLimitModule.forRoot({ clock: clock(), ...options })],
      controllers: controllers as never,
    });
    return { ...started, service: started.app.get(RateLimiterService) };
  }

  it('answers 200 with what is left, then 429 with problem details', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('cats')
      list() {
        return ['tom'];
      }
    }
    const { call } = await start([Cats], { policies: { cats: { limit: 2, ...FIXED } } });
    const first = await call('/cats');
    expect(first.status).toBe(200);
    expect(first.headers.get('ratelimit-policy')).toBe('"cats";q=2;w=60');
    expect(first.headers.get('ratelimit')).toBe('"cats";r=1;t=60');
    expect(first.headers.get('retry-after')).toBeNull();
    await call('/cats');
    const denied = await call('/cats');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(denied.headers.get('cache-control')).toBe('no-store');
    expect(denied.headers.get('retry-after')).toBe('60');
    expect(denied.headers.get('ratelimit')).toBe('"cats";r=0;t=60');
    expect(denied.body).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests",' +
        '"status":429,"detail":"Limit of 2 requests per minute exceeded. Try again in 60 seconds.",' +
        '"violated-policies":["cats"]}',
    );
  });

  it('writes the other header formats for the strictest policy', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('wide', 'narrow')
      list() {
        return [];
      }
    }
    const { call } = await start([Cats], {
      headers: ['triple', 'legacy'],
      policies: { wide: { limit: 9, ...FIXED }, narrow: { limit: 3, ...FIXED } },
    });
    const { headers } = await call('/cats');
    expect(headers.get('ratelimit-limit')).toBe('3');
    expect(headers.get('ratelimit-remaining')).toBe('2');
    expect(headers.get('ratelimit-reset')).toBe('60');
    expect(headers.get('x-ratelimit-limit')).toBe('3');
    expect(headers.get('x-ratelimit-remaining')).toBe('2');
    expect(headers.get('x-ratelimit-reset')).toBe('60');
    expect(headers.get('ratelimit')).toBeNull();
  });

  it('sends no headers where none are wanted, but still Retry-After', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ limit: 1, ...FIXED })
      list() {
        return [];
      }
    }
    const { call } = await start([Cats], { headers: false });
    expect((await call('/cats')).headers.get('ratelimit')).toBeNull();
    expect((await call('/cats')).headers.get('retry-after')).toBe('60');
  });

  it('takes a limit of 0 for what it says', async () => {
    @Controller()
    class Closed {
      @Get('closed')
      @RateLimit({ limit: 0, ...FIXED })
      list() {
        return [];
      }
    }
    const { call } = await start([Closed], { policies: { default: { limit: 10, ...FIXED } } });
    const denied = await call('/closed');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBeNull();
  });

  it('takes text from the environment for a number', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('env')
      list() {
        return [];
      }
    }
    const env = { limit: '2' as unknown as number, window: '60000', algorithm: 'fixed-window' as const };
    const { call, service } = await start([Cats], { policies: { env } });
    expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
    expect(service.policies()[0]).toMatchObject({ name: 'env', limit: 2, windowMs: 60_000 });
  });

  it('counts two controllers of one class name apart', async () => {
    const make = (path: string) => {
      @Controller(path)
      class Cats {
        @Get()
        @RateLimit({ limit: 1, ...FIXED })
        list() {
          return path;
        }
      }
      return Cats;
    };
    const { call, service } = await start([make('a'), make('b')]);
    expect(await statuses(() => call('/a'), 2)).toEqual([200, 429]);
    expect(await statuses(() => call('/b'), 2)).toEqual([200, 429]);
    expect(service.policies().map(({ name }) => name)).toEqual([
      'RootTestModule.Cats.list',
      'RootTestModule.Cats.list~2',
    ]);
  });

  it('counts inherited handlers apart, and a named policy together', async () => {
    class Base {
      @Get('inline')
      @RateLimit({ limit: 1, ...FIXED })
      inline() {
        return 1;
      }
      @Get('shared')
      @RateLimit('shared')
      shared() {
        return 1;
      }
    }
    @Controller('a')
    class A extends Base {}
    @Controller('b')
    class B extends Base {}
    const { call } = await start([A, B], { policies: { shared: { limit: 1, ...FIXED } } });
    expect((await call('/a/inline')).status).toBe(200);
    expect((await call('/b/inline')).status).toBe(200);
    expect((await call('/a/shared')).status).toBe(200);
    expect((await call('/b/shared')).status).toBe(429);
  });

  it('splits a named policy by route where its key says so', async () => {
    @Controller('cats')
    @RateLimit('each')
    class Cats {
      @Get(':id')
      one(@Param('id') id: string) {
        return id;
      }
      @Get(':id/owner')
      owner() {
        return 'bob';
      }
    }
    const { call, service } = await start([Cats], {
      policies: { each: { limit: 1, ...FIXED, key: ['ip', 'route'] } },
    });
    expect((await call('/cats/1')).status).toBe(200);
    expect((await call('/cats/2')).status).toBe(429);
    expect((await call('/cats/1/owner')).status).toBe(200);
    const subject = subjectOf.all(IP, subjectOf.route('/cats/:id'));
    expect((await service.peek('each', subject)).remaining).toBe(0);
  });

  it('checks global policies, unless they are skipped, and a method replaces its class', async () => {
    @Controller()
    @RateLimit('classwide')
    class Cats {
      @Get('plain')
      plain() {
        return 1;
      }
      @Get('own')
      @RateLimit('own')
      own() {
        return 1;
      }
      @Get('skips-global')
      @SkipRateLimit('everywhere')
      skipsGlobal() {
        return 1;
      }
      @Get('skips-all')
      @SkipRateLimit()
      skipsAll() {
        return 1;
      }
    }
    const { call } = await start([Cats], {
      global: 'everywhere',
      policies: {
        everywhere: { limit: 100, ...FIXED },
        classwide: { limit: 100, ...FIXED },
        own: { limit: 100, ...FIXED },
      },
    });
    const policiesOn = async (path: string) => {
      const header = (await call(path)).headers.get('ratelimit-policy') ?? '';
      return [...header.matchAll(/"(\w+)"/g)].map((match) => match[1]);
    };
    expect(await policiesOn('/plain')).toEqual(['everywhere', 'classwide']);
    expect(await policiesOn('/own')).toEqual(['everywhere', 'own']);
    expect(await policiesOn('/skips-global')).toEqual(['classwide']);
    expect(await policiesOn('/skips-all')).toEqual([]);
  });

  it('counts an invocation once, however often the guard is bound', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Cats {
      @Get('cats')
      @UseGuards(RateLimitGuard)
      @UseInterceptors(RateLimitInterceptor)
      @RateLimit('cats')
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { policies: { cats: { limit: 10, ...FIXED } } });
    await call('/cats');
    expect((await service.peek('cats', IP)).remaining).toBe(9);
  });

  it('counts concurrent calls exactly', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ limit: 5, ...FIXED })
      list() {
        return [];
      }
    }
    const { call } = await start([Cats]);
    const answers = await Promise.all(Array.from({ length: 200 }, () => call('/cats')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
  });

  it('decides an IP policy before authentication, and a user policy after it', async () => {
    @Controller()
    class Login {
      @Post('login')
      @NeedsUser()
      @RateLimit('by-ip', 'by-user')
      login() {
        return 'in';
      }
    }
    const { call, service } = await startApp(adapter, {
      imports: [
        RateLimitModule.forRoot({
          clock: clock(),
          policies: { 'by-ip': { limit: 3, ...FIXED }, 'by-user': { limit: 1, ...FIXED, key: 'user' } },
        }),
      ],
      controllers: [Login],
      providers: [{ provide: APP_GUARD, useValue: { canActivate: () => true } }],
    }).then((started) => ({ ...started, service: started.app.get(RateLimiterService) }));
    const login = (user?: string) =>
      call('/login', { method: 'POST', headers: user ? { 'x-user': user } : {} });
    // A failed login stays counted.
    expect((await login()).status).toBe(401);
    expect((await service.peek('by-ip', IP)).remaining).toBe(2);
    expect((await login('ann')).status).toBe(201);
    expect((await service.peek('by-ip', IP)).remaining).toBe(1);
    // The user's policy denies, and gives back what the address was charged.
    const denied = await login('ann');
    expect(denied.status).toBe(429);
    expect(JSON.parse(denied.body)).toMatchObject({ 'violated-policies': ['by-user'] });
    expect((await service.peek('by-ip', IP)).remaining).toBe(1);
    expect((await service.peek('by-user', subjectOf.user('ann'))).remaining).toBe(0);
    expect((await login('bob')).status).toBe(201);
    expect((await login('cid')).status).toBe(429);
  });

  it('never lets users without an identity share a bucket of nobody', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ name: 'by-user', limit: 1, ...FIXED, key: 'user' })
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { trustedProxies: 'loopback' });
    const from = (address: string) => call('/cats', { headers: { 'x-forwarded-for': address } });
    expect((await from('203.0.113.1')).status).toBe(200);
    expect((await from('203.0.113.1')).status).toBe(429);
    expect((await from('203.0.113.2')).status).toBe(200);
    expect((await service.peek('by-user', 'ip:203.0.113.1')).remaining).toBe(0);
  });

  it('asks a key function again after the guards', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @NeedsUser()
      @RateLimit({ name: 'by-tenant', limit: 1, ...FIXED, key: ({ request }) => request.user?.id })
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats]);
    expect((await call('/cats', { headers: { 'x-user': 'ann' } })).status).toBe(200);
    expect((await call('/cats', { headers: { 'x-user': 'ann' } })).status).toBe(429);
    expect((await call('/cats', { headers: { 'x-user': 'bob' } })).status).toBe(200);
    expect((await service.peek('by-tenant', subjectOf.key('ann'))).remaining).toBe(0);
  });

  it('takes key, cost and skip of one place from the decorator', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({
        policy: 'api',
        cost: ({ request }) => Number(request.headers['x-cost'] ?? 1),
        key: 'header:X-Tenant',
        skip: async ({ header }) => header('X-Health') === 'yes',
      })
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { policies: { api: { limit: 10, ...FIXED } } });
    const subject = subjectOf.header('x-tenant', 'acme');
    const as = (headers: Record<string, string>) =>
      call('/cats', { headers: { 'x-tenant': 'acme', ...headers } });
    expect((await as({ 'x-cost': '8' })).status).toBe(200);
    // 2 are left: a call of 5 is denied, and 2 are still left.
    expect((await as({ 'x-cost': '5' })).status).toBe(429);
    expect((await service.peek('api', subject)).remaining).toBe(2);
    expect((await as({ 'x-health': 'yes' })).status).toBe(200);
    expect((await service.peek('api', subject)).remaining).toBe(2);
    // A cost that is none is a failure, and consumes nothing.
    expect((await as({ 'x-cost': '0.5' })).status).toBe(500);
    expect((await service.peek('api', subject)).remaining).toBe(2);
  });

  it('consumes nothing anywhere when one policy of a call denies', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('user', 'all')
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], {
      policies: { user: { limit: 1, ...FIXED }, all: { limit: 10, ...FIXED, key: 'global' } },
    });
    const seen = await statuses(() => call('/cats'), 20);
    expect(seen.filter((status) => status === 200)).toHaveLength(1);
    expect((await service.peek('all', 'global')).remaining).toBe(9);
  });

  it('counts and reports in shadow mode, and denies nobody', async () => {
    const outcomes: string[] = [];
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ name: 'trial', limit: 1, ...FIXED, mode: 'shadow', block: '1h' })
      list() {
        return [];
      }
    }
    const { call } = await start([Cats], {
      observers: [{ decision: (event) => void outcomes.push(event.outcome) }],
    });
    const answers = [await call('/cats'), await call('/cats')];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers[1]!.headers.get('ratelimit')).toBeNull();
    expect(outcomes).toEqual(['allowed', 'shadow-denied']);
  });

  it('gives back what countIf does not count, when the response has gone out', async () => {
    @Controller()
    class Cats {
      @Get('cats/:id')
      @RateLimit('misses')
      one(@Param('id') id: string) {
        if (id === 'none') throw new HttpException('no such cat', 404);
        return { id };
      }
      @Get('guarded')
      @NeedsUser()
      @RateLimit('misses')
      guarded() {
        return 1;
      }
    }
    const outcomes: unknown[] = [];
    const { call, service } = await start([Cats], {
      policies: {
        misses: {
          limit: 2,
          ...FIXED,
          countIf: (outcome) => {
            outcomes.push({ ...outcome, error: outcome.error instanceof Error });
            return (outcome.statusCode ?? 0) >= 400;
          },
        },
      },
    });
    const left = async () => (await service.peek('misses', IP)).remaining;
    await call('/cats/1');
    await settled(async () => (await left()) === 2);
    expect(outcomes).toEqual([{ result: { id: '1' }, error: false, statusCode: 200 }]);
    await call('/cats/none');
    expect(await left()).toBe(1);
    // Turned away by another guard: no interceptor saw it, the response did.
    await call('/guarded');
    expect(await left()).toBe(0);
    expect(outcomes.slice(1)).toEqual([
      { error: true, statusCode: 404 },
      { error: false, statusCode: 401 },
    ]);
    expect((await call('/cats/1')).status).toBe(429);
  });

  it('keeps a subject out for the block that follows a denial', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ name: 'strict', limit: 1, window: '1s', algorithm: 'fixed-window', block: '1m' })
      list() {
        return [];
      }
    }
    const time = clock();
    const { call } = await start([Cats], { clock: time });
    expect(await statuses(() => call('/cats'), 2)).toEqual([200, 429]);
    time.advance(59_999);
    const denied = await call('/cats');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('1');
    time.advance(1);
    expect((await call('/cats')).status).toBe(200);
  });

  it('holds calls of a leaky bucket until their turn, and lets a client go that leaves', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ name: 'shaped', limit: 1, window: '10s', algorithm: 'leaky-bucket', burst: 3 })
      list() {
        return [];
      }
    }
    const time = clock();
    const { call, service } = await start([Cats], { clock: time });
    expect((await call('/cats')).status).toBe(200);
    const held = call('/cats');
    await settled(async () => (await service.peek('shaped', IP)).remaining === 1);
    const leaving = new AbortController();
    const left = call('/cats', { signal: leaving.signal }).catch(() => 'left');
    await settled(async () => (await service.peek('shaped', IP)).remaining === 0);
    leaving.abort();
    expect(await left).toBe('left');
    await settled(async () => (await service.peek('shaped', IP)).remaining === 1);
    time.advance(9_999);
    expect(await Promise.race([held, pause(50)])).toBe('pause');
    time.advance(1);
    expect((await held).status).toBe(200);
  });

  it('obeys module-wide skip and denied', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ limit: 1, ...FIXED })
      list(@RateLimitVerdict() verdict: Verdict | undefined) {
        return { remaining: verdict?.remaining };
      }
    }
    const { call } = await start([Cats], {
      skip: ({ request }) => request.headers['x-health'] === 'yes',
      denied: (_call, verdicts) => new HttpException({ slow: verdicts[0]!.policy.length }, 418),
    });
    expect((await call('/cats', { headers: { 'x-health': 'yes' } })).body).toBe('{}');
    expect((await call('/cats')).body).toBe('{"remaining":0}');
    const denied = await call('/cats');
    expect(denied.status).toBe(418);
    expect(denied.headers.get('content-type')).toContain('application/json');
    expect(denied.headers.get('retry-after')).toBe('60');
    expect(JSON.parse(denied.body)).toEqual({ slow: 24 });
  });

  it('waits for whatever has a then(), and skips only for true', async () => {
    // oxlint-disable-next-line unicorn/no-thenable -- what other libraries than the language's own return
    const thenable = (value: unknown) => ({ then: (done: (value: unknown) => void) => done(value) }) as never;
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ policy: 'api', skip: ({ request }) => thenable(request.headers['x-skip'] === 'yes') })
      list() {
        return [];
      }
      @Get('odd')
      @RateLimit({ policy: 'api', skip: () => 'no' as never })
      odd() {
        return [];
      }
      @Get('keyed')
      @RateLimit({ policy: 'api', key: () => thenable('ann') })
      keyed() {
        return [];
      }
    }
    const { call, service } = await start([Cats], {
      policies: { api: { limit: 9, ...FIXED } },
      skip: () => thenable(false),
    });
    await call('/cats', { headers: { 'x-skip': 'yes' } });
    expect((await service.peek('api', IP)).remaining).toBe(9);
    await call('/cats');
    await call('/odd');
    expect((await service.peek('api', IP)).remaining).toBe(7);
    await call('/keyed');
    expect((await service.peek('api', 'key:ann')).remaining).toBe(8);
  });

  it('hands no verdict of a policy in shadow mode to the handler', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('api', { limit: 1, ...FIXED, mode: 'shadow' })
      list(@RateLimitVerdict() verdict: Verdict | undefined) {
        return { policy: verdict?.policy };
      }
      @Get('trial')
      @RateLimit({ limit: 1, ...FIXED, mode: 'shadow' })
      trial(@RateLimitVerdict() verdict: Verdict | undefined) {
        return { policy: verdict?.policy };
      }
    }
    const { call } = await start([Cats], { policies: { api: { limit: 9, ...FIXED } } });
    expect((await call('/cats')).body).toBe('{"policy":"api"}');
    expect((await call('/trial')).body).toBe('{}');
  });

  it('reads headers by any spelling of their names', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ policy: 'api', key: (context) => context.header('X-Key') })
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { policies: { api: { limit: 9, ...FIXED } } });
    await call('/cats', { headers: { 'x-key': 'ann' } });
    expect((await service.peek('api', 'key:ann')).remaining).toBe(8);
  });

  it('counts nothing when it is not enabled', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ limit: 1, ...FIXED })
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { enabled: false });
    expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 200]);
    expect(service.status().keys).toBe(0);
    await service.updatePolicy('RootTestModule.Cats.list', { limit: 5, algorithm: 'token-bucket', burst: 2 });
    expect(await service.consume('RootTestModule.Cats.list')).toMatchObject({ allowed: true, remaining: 2 });
  });

  it('binds nothing globally with registerGuard: false', async () => {
    @Controller()
    class Cats {
      @Get('bound')
      @UseGuards(RateLimitGuard)
      @RateLimit('cats')
      bound() {
        return [];
      }
      @Get('unbound')
      @RateLimit('cats')
      unbound() {
        return [];
      }
    }
    const { call } = await start([Cats], {
      registerGuard: false,
      policies: { cats: { limit: 1, ...FIXED } },
    });
    expect(await statuses(() => call('/unbound'), 2)).toEqual([200, 200]);
    expect(await statuses(() => call('/bound'), 2)).toEqual([200, 429]);
  });

  it('sees a policy change with the next call', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit('cats')
      list() {
        return [];
      }
    }
    const { call, service } = await start([Cats], { policies: { cats: { limit: 1, ...FIXED } } });
    expect(await statuses(() => call('/cats'), 2)).toEqual([200, 429]);
    await service.updatePolicy('cats', { limit: 3 });
    expect(await statuses(() => call('/cats'), 3)).toEqual([200, 200, 429]);
  });

  it('gives subjects quotas of their own', async () => {
    @Controller()
    class Cats {
      @Get('cats')
      @RateLimit({ name: 'plan', limit: 1, ...FIXED, key: 'header:x-key' })
      list() {
        return [];
      }
    }
    const asked: unknown[] = [];
    const { call } = await start([Cats], {
      resolver: {
        resolve: async ({ charges, call: context }) => {
          asked.push({ charges, transport: context?.transport });
          return charges.map(({ subject }) => (subject === 'header:x-key:gold' ? { limit: 3 } : undefined));
        },
      },
    });
    const as = (key: string) => () => call('/cats', { headers: { 'x-key': key } });
    expect(await statuses(as('gold'), 4)).toEqual([200, 200, 200, 429]);
    expect(await statuses(as('tin'), 2)).toEqual([200, 429]);
    expect(asked[0]).toEqual({
      charges: [{ policy: 'plan', subject: 'header:x-key:gold' }],
      transport: 'http',
    });
  });
});

it('answers a denial with the same bytes on both adapters', async () => {
  @Controller()
  class Cats {
    @Get('cats')
    @RateLimit({ name: 'ünïcode "quoted"', limit: 1, ...FIXED })
    list() {
      return [];
    }
  }
  @Module({
    imports: [RateLimitModule.forRoot({ clock: new ManualClock(), headers: ['ietf', 'triple', 'legacy'] })],
    controllers: [Cats],
  })
  class App {}
  const denials = [];
  for (const adapter of ADAPTERS) {
    const { call } = await startApp(adapter, { imports: [App] });
    await call('/cats');
    const { status, headers, body } = await call('/cats');
    const own = [...headers].filter(([name]) => /ratelimit|retry|cache|content/.test(name));
    denials.push({ status, own, body });
    await closeApps();
  }
  expect(denials[0]).toEqual(denials[1]);
  expect(denials[0]!.own).toHaveLength(12);
});

function pause(ms: number): Promise<string> {
  return new Promise((resolve) => void setTimeout(() => resolve('pause'), ms));
}

/** Waits until something has come about that another side of the connection brings about. */
async function settled(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('it has not come about within 5 s');
    await pause(5);
  }
}
