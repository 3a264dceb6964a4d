import { jest } from '@jest/globals';
import {
  Catch,
  Logger,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type ArgumentsHost,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { SubscribeMessage, WebSocketGateway, WsException } from '@nestjs/websockets';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  RateLimitVerdict,
  SkipRateLimit,
  type CallContext,
  type CallOutcome,
  type PolicyOptions,
  type RateLimitExceededException,
  type RateLimitModuleOptions,
  type Verdict,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { closeApps, startApp } from '../support/http-app.js';
import { startRedis, until } from '../support/redis-servers.js';
import { WS_KINDS, type WsClient } from '../support/ws-clients.js';

/** Set by the jest project that runs this file. */
declare const NEST_MAJOR: 11 | 12;

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const answer = (data: unknown) => ({ event: 'answer', data });

/** Logs the socket in, as a guard of an application may. */
class LogIn implements CanActivate {
  canActivate(context: ExecutionContext) {
    const client = context.switchToWs().getClient<{ data?: object; user?: object }>();
    const user = { id: context.switchToWs().getData<{ as: string }>().as };
    if (client.data === undefined) client.user = user;
    else client.data = { user };
    return true;
  }
}

@Catch(WsException)
class OwnFilter {
  catch(exception: WsException, host: ArgumentsHost) {
    const client = host
      .switchToWs()
      .getClient<{ readyState?: number; send(text: string): void; emit: Function }>();
    const data = (exception.cause as RateLimitExceededException).verdicts.length;
    if (client.readyState === undefined) client.emit('own', data);
    else client.send(JSON.stringify({ event: 'own', data }));
  }
}

let clock: ManualClock;
let calls: CallContext[];
let outcomes: CallOutcome[];
let left: number;
const connected: WsClient[] = [];

// Nest 11 gives gateways no global guards; on Nest 12 each message counts once all the same.
@WebSocketGateway()
@UseGuards(RateLimitGuard)
@UseInterceptors(RateLimitInterceptor)
class Cats {
  @SubscribeMessage('by-ip')
  @RateLimit('by-ip')
  byIp(_client: unknown, data: unknown) {
    return answer(data);
  }

  @SubscribeMessage('by-user')
  @UseGuards(LogIn)
  @RateLimit('by-user')
  byUser() {
    return answer('user');
  }

  @SubscribeMessage('by-key')
  @RateLimit('by-key')
  byKey() {
    return answer('key');
  }

  @SubscribeMessage('counted')
  @RateLimit('counted')
  counted(_client: unknown, data: number) {
    return answer(data);
  }

  @SubscribeMessage('verdict')
  @RateLimit('by-ip')
  verdict(@RateLimitVerdict() verdict: Verdict) {
    return answer(verdict.remaining);
  }

  @SubscribeMessage('filtered')
  @UseFilters(OwnFilter)
  @RateLimit('by-ip')
  filtered() {
    return answer('filtered');
  }

  @SubscribeMessage('own-error')
  @RateLimit('own-error')
  ownError() {
    return answer('own-error');
  }

  @SubscribeMessage('shaped')
  @RateLimit('shaped')
  shaped() {
    return answer('shaped');
  }

  @SubscribeMessage('free')
  @SkipRateLimit()
  free() {
    return answer('free');
  }

  handleDisconnect() {
    left++;
  }
}

const keepCall = (call: CallContext) => {
  calls.push(call);
  return 'all';
};

const POLICIES: Record<string, PolicyOptions> = {
  all: { limit: 100, ...FIXED, key: keepCall },
  'by-ip': { limit: 2, ...FIXED },
  'by-user': { limit: 1, ...FIXED, key: 'user' },
  'by-key': { limit: 1, ...FIXED, key: ['header:X-Api-Key', 'route'] },
  counted: {
    limit: 1,
    ...FIXED,
    countIf: (outcome: CallOutcome) => {
      outcomes.push(outcome);
      return (outcome.result as { data: number }).data !== 0;
    },
  },
  'own-error': { limit: 0, ...FIXED },
  shaped: { limit: 1, window: '10s', algorithm: 'leaky-bucket', burst: 3 },
};

beforeEach(() => {
  clock = new ManualClock();
  calls = [];
  outcomes = [];
  left = 0;
});

afterEach(async () => {
  for (const client of connected.splice(0)) client.close();
  await closeApps();
});

describe.each(WS_KINDS)('a gateway on $name', ({ adapter, connect }) => {
  const start = async (options: RateLimitModuleOptions = {}) => {
    const { app } = await startApp(
      'express',
      {
        imports: [
          RateLimitModule.forRoot({
            clock,
            policies: POLICIES,
            global: 'all',
            trustedProxies: ['loopback'],
            ...options,
          }),
        ],
        providers: [Cats],
      },
      (started) => started.useWebSocketAdapter(adapter(started)),
    );
    const { port } = app.getHttpServer().address() as { port: number };
    const service = app.get(RateLimiterService);
    const client = async (headers?: Record<string, string>) => {
      const socket = await connect(port, headers);
      connected.push(socket);
      return socket;
    };
    return { client, service };
  };
  const ask = (client: WsClient, event: string, data: unknown = { as: 'ann' }) => {
    client.send(event, data);
    return client.next();
  };
  const denied = (policy: string, retryAfterMs: number | null = 60_000) => ({
    event: 'exception',
    data: {
      code: 'TOO_MANY_REQUESTS',
      message: expect.stringContaining('exceeded'),
      retryAfterMs,
      violatedPolicies: [policy],
    },
  });

  it('counts each message by the address of the handshake, and denies without closing the connection', async () => {
    const { client, service } = await start();
    const near = await client();
    const far = await client({ 'X-Forwarded-For': '203.0.113.7' });
    expect([await ask(near, 'by-ip', 1), await ask(near, 'by-ip', 1)]).toEqual([answer(1), answer(1)]);
    expect(await ask(near, 'by-ip', 1)).toEqual(denied('by-ip'));
    expect(near.isOpen()).toBe(true);
    expect(await ask(near, 'free')).toEqual(answer('free'));
    expect(await ask(far, 'by-ip', 2)).toEqual(answer(2));
    expect((await service.peek('by-ip', 'ip:203.0.113.7')).remaining).toBe(1);
    expect((await service.peek('by-ip', 'ip:127.0.0.1')).remaining).toBe(0);
    expect(calls.at(-1)).toMatchObject({ transport: 'websocket', ip: '203.0.113.7', route: 'by-ip' });
    clock.advance(60_000);
    expect(await ask(near, 'by-ip', 3)).toEqual(answer(3));
  });

  it('counts by the user that a guard put on the socket, and by a header of the handshake', async () => {
    const { client, service } = await start();
    const first = await client({ 'X-Api-Key': 'k1' });
    const second = await client({ 'X-Api-Key': 'k2' });
    expect(await ask(first, 'by-user', { as: 'ann' })).toEqual(answer('user'));
    expect(await ask(second, 'by-user', { as: 'ann' })).toEqual(denied('by-user'));
    expect(await ask(second, 'by-user', { as: 'bob' })).toEqual(answer('user'));
    expect([await ask(first, 'by-key'), await ask(first, 'by-key')]).toEqual([
      answer('key'),
      denied('by-key'),
    ]);
    expect(await ask(second, 'by-key')).toEqual(answer('key'));
    expect((await service.peek('by-user', 'user:bob')).remaining).toBe(0);
  });

  it('gives messages at the same time their own verdicts, and asks countIf about each result', async () => {
    const { client, service } = await start();
    const socket = await client();
    socket.send('verdict');
    socket.send('verdict', { a: 1 });
    expect([await socket.next(), await socket.next()]).toEqual([answer(1), answer(0)]);
    expect(await ask(socket, 'counted', 0)).toEqual(answer(0));
    await until(async () => (await service.peek('counted', 'ip:127.0.0.1')).remaining === 1);
    expect(await ask(socket, 'counted', 5)).toEqual(answer(5));
    expect(await ask(socket, 'counted', 0)).toEqual(denied('counted'));
    expect(outcomes).toEqual([{ result: answer(0) }, { result: answer(5) }]);
    expect((await service.peek('all', 'key:all')).remaining).toBe(96);
  });

  it("leaves denials to the application's filter, and to its own errors", async () => {
    const { client } = await start();
    const socket = await client();
    for (let i = 0; i < 2; i++) expect(await ask(socket, 'filtered')).toEqual(answer('filtered'));
    expect(await ask(socket, 'filtered')).toEqual({ event: 'own', data: 2 });
    const denying = jest.fn(() => new Error('mine'));
    const other = await (await start({ denied: denying })).client();
    other.send('own-error');
    await until(() => Promise.resolve(denying.mock.calls.length === 1));
  });

  it('holds messages of a leaky bucket until their turn, and lets a client go that leaves', async () => {
    const { client, service } = await start();
    const [staying, leaving] = [await client(), await client()];
    expect(await ask(staying, 'shaped')).toEqual(answer('shaped'));
    staying.send('shaped');
    leaving.send('shaped');
    await until(async () => (await service.peek('shaped', 'ip:127.0.0.1')).remaining === 0);
    leaving.close();
    await until(() => Promise.resolve(left === 1));
    clock.advance(10_000);
    expect(await staying.next()).toEqual(answer('shaped'));
  });

  it('says that a service is unavailable where Redis is and the policy denies then', async () => {
    const server = await startRedis();
    try {
      const { client } = await start({
        redis: server.url,
        prefix: 'ws',
        clock: undefined!,
        policies: {
          ...POLICIES,
          all: { limit: 100, ...FIXED },
          'by-ip': { limit: 1, window: '30d', onUnavailable: 'deny' },
        },
      });
      const socket = await client();
      expect(await ask(socket, 'by-ip', 1)).toEqual(answer(1));
      expect(await ask(socket, 'by-ip', 1)).toMatchObject({ data: { code: 'TOO_MANY_REQUESTS' } });
      await server.kill();
      await until(async () => {
        const { data } = await ask(socket, 'by-ip', 1);
        return (data as { code: string }).code === 'SERVICE_UNAVAILABLE';
      });
      expect(socket.isOpen()).toBe(true);
      await server.restart();
    } finally {
      await server.stop();
    }
  });
});

it('says at start-up where Nest 11 gives gateways no global guard', async () => {
  @WebSocketGateway()
  class Unguarded {
    @SubscribeMessage('by-ip')
    @RateLimit('by-ip')
    byIp() {}
  }
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
  try {
    await startApp('express', {
      imports: [RateLimitModule.forRoot({ clock, policies: POLICIES })],
      providers: [Unguarded],
    });
    const said = warn.mock.calls.map(([message]) => String(message));
    const expected = /^RL_GUARD_NOT_BOUND: .* Unguarded\.byIp/;
    expect(said.filter((message) => expected.test(message))).toHaveLength(NEST_MAJOR === 11 ? 1 : 0);
  } finally {
    warn.mockRestore();
  }
});
