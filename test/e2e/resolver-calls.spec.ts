import { jest } from '@jest/globals';
import { Controller, Get, Logger, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import {
  RateLimit,
  RateLimitModule,
  type PolicyOptions,
  type PolicyResolver,
  type ResolverRequest,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { closeApps, startApp } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const ADDRESS = { policy: 'address', subject: 'ip:127.0.0.1' };
const PLAN = { policy: 'plan', subject: 'user:ann' };

/** Logs in whoever sends `x-user`, and nobody else. */
class LogIn implements CanActivate {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: object }>();
    request.user = { id: request.headers['x-user'] };
    return request.headers['x-user'] !== undefined;
  }
}

@Controller()
@UseGuards(LogIn)
class Cats {
  @Get('both')
  @RateLimit('address', 'plan')
  both() {}

  @Get('guard')
  @RateLimit('address', 'route')
  guard() {}
}

let asked: { charges: ResolverRequest['charges']; user: string | undefined }[];
let warn: jest.SpiedFunction<Logger['warn']>;

beforeEach(() => {
  asked = [];
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
});

afterEach(async () => {
  warn.mockRestore();
  await closeApps();
});

/** Raises every limit that it is asked about to 9. */
async function start(concerns?: PolicyResolver['concerns'], address: Partial<PolicyOptions> = {}) {
  const { call } = await startApp('express', {
    imports: [
      RateLimitModule.forRoot({
        clock: new ManualClock(),
        policies: {
          address: { limit: 5, ...FIXED, ...address },
          route: { limit: 5, ...FIXED, key: 'route' },
          plan: { limit: 5, ...FIXED, key: 'user' },
        },
        resolver: {
          concerns,
          async resolve({ charges, call: context }) {
            asked.push({ charges, user: context?.user });
            return charges.map(() => ({ limit: 9 }));
          },
        },
      }),
    ],
    controllers: [Cats],
  });
  return async (path: string, user?: string) => {
    const { status, headers } = await call(path, { headers: user === undefined ? {} : { 'x-user': user } });
    return [status, headers.get('ratelimit-policy')];
  };
}

const warnings = () =>
  warn.mock.calls.map(([message]) => String(message)).filter((m) => m.startsWith('RL_RESOLVER_NOT_ASKED'));

it('asks a resolver in the guard where that decides everything', async () => {
  const get = await start();
  expect(await get('/guard', 'ann')).toEqual([200, '"address";q=9;w=60, "route";q=9;w=60']);
  expect(asked).toEqual([
    { charges: [ADDRESS, { policy: 'route', subject: 'route:/guard' }], user: undefined },
  ]);
  expect(warnings()).toEqual([]);
});

it('asks once after the guards where something is decided there, and says what went by its own numbers', async () => {
  const get = await start();
  for (let i = 0; i < 2; i++)
    expect(await get('/both', 'ann')).toEqual([200, '"address";q=5;w=60, "plan";q=9;w=60']);
  expect(asked).toEqual([
    { charges: [PLAN], user: 'ann' },
    { charges: [PLAN], user: 'ann' },
  ]);
  expect(warnings()).toEqual([expect.stringContaining("policy 'address' goes by its own numbers")]);
});

it.each([
  ['the earlier', 'address', ADDRESS, '"address";q=9;w=60, "plan";q=5;w=60'],
  ['the later', 'plan', PLAN, '"address";q=5;w=60, "plan";q=9;w=60'],
])('asks once, when %s is decided, a resolver that concerns it alone', async (_which, name, charge, told) => {
  const get = await start([name]);
  expect(await get('/both', 'ann')).toEqual([200, told]);
  expect(asked.map(({ charges }) => charges)).toEqual([[charge]]);
  expect(warnings()).toEqual([]);
});

it('asks once about all that is decided after the guards', async () => {
  const get = await start(undefined, { enforceAt: 'interceptor' });
  expect(await get('/both', 'ann')).toEqual([200, '"address";q=9;w=60, "plan";q=9;w=60']);
  expect(asked).toEqual([{ charges: [ADDRESS, PLAN], user: 'ann' }]);
  expect(warnings()).toEqual([]);
});

it('does not ask about a call that a guard has turned away before', async () => {
  const get = await start(['plan']);
  expect(await get('/both')).toEqual([403, '"address";q=5;w=60']);
  expect(asked).toEqual([]);
});

it('fails to start with a resolver that concerns a policy that there is not', async () => {
  await expect(start(['plans'])).rejects.toMatchObject({
    code: 'RL_UNKNOWN_POLICY',
    path: 'resolver.concerns',
  });
});
