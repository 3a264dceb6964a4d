import { fileURLToPath } from 'node:url';
import { Controller, Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import {
  credentials,
  loadPackageDefinition,
  Metadata,
  type ClientDuplexStream,
  type ClientWritableStream,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import {
  ClientProxyFactory,
  GrpcMethod,
  GrpcStreamCall,
  GrpcStreamMethod,
  MessagePattern,
  RpcException,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import {
  CommonLimit,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  RateLimitVerdict,
  type CallContext,
  type PolicyOptions,
  type RateLimitModuleOptions,
  type Verdict,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { firstValueFrom, from, last, type Observable } from 'rxjs';
import { freePort, startRedis, until, type RedisServer } from '../support/redis-servers.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const PROTO = fileURLToPath(new URL('../support/cats.proto', import.meta.url));

const policies: Record<string, PolicyOptions> = {
  'by-ip': { limit: 2, ...FIXED },
  shaped: { limit: 1, window: '10s', algorithm: 'leaky-bucket', burst: 3 },
  'by-key': { limit: 1, ...FIXED, key: ['header:X-Api-Key', 'route'] },
  streams: { limit: 1, ...FIXED, countIf: ({ result }) => (result as { name: string }).name !== 'free' },
};

interface Cat {
  readonly name: string;
}

@Controller()
class Cats {
  @MessagePattern('by-ip')
  @RateLimit('by-ip')
  byIp(_name: unknown) {
    return 'Tom';
  }

  @MessagePattern('verdict')
  @RateLimit('by-ip')
  verdict(@RateLimitVerdict() verdict: Verdict) {
    return verdict.remaining;
  }

  @MessagePattern({ cmd: 'shaped' })
  @RateLimit('shaped')
  shaped() {
    return 'shaped';
  }

  @MessagePattern('method')
  @CommonLimit({ limit: 0, ...FIXED })
  async method() {}

  @GrpcMethod('Cats', 'Find')
  @RateLimit('by-ip', 'by-key')
  find({ name }: { name: string }) {
    return { name };
  }

  @GrpcMethod('Cats', 'All')
  @RateLimit('streams')
  all({ name }: { name: string }) {
    return from([{ name: 'Tom' }, { name }]);
  }

  @GrpcStreamMethod('Cats', 'Last')
  @RateLimit('by-ip', 'by-key')
  last(queries: Observable<Cat>) {
    return queries.pipe(last());
  }

  @GrpcStreamCall('Cats', 'LastByCall')
  @RateLimit('by-ip', 'by-key')
  async lastByCall(call: ServerReadableStream<Cat, Cat>, done: sendUnaryData<Cat>) {
    let seen: Cat | undefined;
    for await (const query of call) seen = query as Cat;
    done(null, seen);
  }

  @GrpcStreamMethod('Cats', 'Each')
  @RateLimit('by-ip', 'by-key')
  each(queries: Observable<Cat>) {
    return queries;
  }

  @GrpcStreamCall('Cats', 'EachByCall')
  @RateLimit('by-ip', 'by-key')
  eachByCall(call: ServerDuplexStream<Cat, Cat>) {
    call.on('data', (query: Cat) => call.write(query));
    call.on('end', () => call.end());
  }

  @GrpcStreamCall('Cats', 'Limited')
  @CommonLimit({ limit: 0, ...FIXED })
  async limited(_call: ServerDuplexStream<Cat, Cat>) {}
}

let clock: ManualClock;
let closing: (() => unknown)[] = [];

beforeEach(() => {
  clock = new ManualClock();
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function serve(microservice: MicroserviceOptions, options: RateLimitModuleOptions = {}) {
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ clock, policies, trustedProxies: ['loopback'], ...options })],
    controllers: [Cats],
  }).compile();
  const service = testing.createNestMicroservice(microservice);
  service.useLogger(false);
  closing.push(() => service.close());
  await service.listen();
  return { service, limits: service.get(RateLimiterService) };
}

async function messagesOver(transport: Transport.TCP | Transport.REDIS, port: number) {
  const client = ClientProxyFactory.create({ transport, options: { host: '127.0.0.1', port } } as never);
  closing.push(() => client.close());
  await client.connect();
  return {
    send: (pattern: unknown, data: unknown = {}) => firstValueFrom(client.send<unknown>(pattern, data)),
    client,
  };
}

const DENIED = {
  code: 'TOO_MANY_REQUESTS',
  message: expect.stringContaining('exceeded'),
  retryAfterMs: 60_000,
  violatedPolicies: ['by-ip'],
};

describe('over TCP', () => {
  const start = async (options?: RateLimitModuleOptions) => {
    const { service, limits } = await serve(
      { transport: Transport.TCP, options: { host: '127.0.0.1', port: 0 } },
      options,
    );
    const { port } = service.unwrap<{ address(): { port: number } }>().address();
    return { limits, port, ...(await messagesOver(Transport.TCP, port)) };
  };

  it('counts messages by the address of the connection, and tells the handler the verdict', async () => {
    const { limits, send } = await start();
    expect([await send('verdict'), await send('by-ip')]).toEqual([1, 'Tom']);
    await expect(send('by-ip')).rejects.toEqual(DENIED);
    expect((await limits.peek('by-ip', 'ip:127.0.0.1')).remaining).toBe(0);
    clock.advance(60_000);
    expect(await send('by-ip')).toBe('Tom');
  });

  it('answers in the same form where a limited method denies, and as `denied` says where that is given', async () => {
    const { send } = await start();
    await expect(send('method')).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS', retryAfterMs: null });
    const calls: CallContext[] = [];
    const own = await start({
      denied: (call) => {
        calls.push(call);
        return new RpcException({ mine: call.route });
      },
      policies: { ...policies, 'by-ip': { limit: 0, ...FIXED } },
    });
    await expect(own.send('by-ip')).rejects.toEqual({ mine: 'by-ip' });
    expect(calls).toMatchObject([{ transport: 'rpc', ip: '127.0.0.1', args: [{}, calls[0]!.request] }]);
  });

  it('holds messages of a leaky bucket until their turn, and lets a client go that leaves', async () => {
    const { limits, send, port } = await start();
    const leaving = await messagesOver(Transport.TCP, port);
    const left = async () => (await limits.peek('shaped', 'ip:127.0.0.1')).remaining;
    expect(await send({ cmd: 'shaped' })).toBe('shaped');
    const held = send({ cmd: 'shaped' });
    await until(async () => (await left()) === 1);
    const gone = leaving.send({ cmd: 'shaped' }).catch(() => 'gone');
    await until(async () => (await left()) === 0);
    leaving.client.close();
    expect(await gone).toBe('gone');
    // The place of one that has left is given back.
    await until(async () => (await left()) === 1);
    clock.advance(10_000);
    expect(await held).toBe('shaped');
  });
});

type ReadsStream = (
  metadata: Metadata,
  done: (error: ServiceError | null, cat: Cat) => void,
) => ClientWritableStream<Cat>;

interface GrpcClient {
  Find(query: object, metadata: Metadata, done: (error: ServiceError | null, cat: object) => void): void;
  All(query: object): AsyncIterable<Cat>;
  Last: ReadsStream;
  LastByCall: ReadsStream;
  Each(metadata: Metadata): ClientDuplexStream<Cat, Cat>;
  EachByCall(metadata: Metadata): ClientDuplexStream<Cat, Cat>;
  Limited(metadata: Metadata): ClientDuplexStream<Cat, Cat>;
  close(): void;
}

describe('over gRPC', () => {
  const start = async (options?: RateLimitModuleOptions) => {
    const url = `127.0.0.1:${await freePort()}`;
    const { limits } = await serve(
      { transport: Transport.GRPC, options: { package: 'cats', protoPath: PROTO, url } },
      options,
    );
    const { cats } = loadPackageDefinition(loadSync(PROTO)) as never as {
      cats: { Cats: new (url: string, credentials: unknown) => GrpcClient };
    };
    const client = new cats.Cats(url, credentials.createInsecure());
    closing.push(() => client.close());
    const find = (headers: Record<string, string> = {}) =>
      new Promise<object>((found, failed) => {
        const metadata = Metadata.fromHttp2Headers(headers);
        client.Find({ name: 'Tom' }, metadata, (error, cat) => (error === null ? found(cat) : failed(error)));
      });
    const all = async (name: string) => {
      const names: string[] = [];
      for await (const cat of client.All({ name })) names.push(cat.name);
      return names;
    };
    const send = (call: ClientWritableStream<Cat>, names: readonly string[]) => {
      for (const name of names) call.write({ name });
      call.end();
    };
    /** Sends names, and waits for what comes back: an array in either case. */
    const stream = (
      method: 'Last' | 'LastByCall' | 'Each' | 'EachByCall' | 'Limited',
      names: readonly string[],
      headers: Record<string, string> = {},
    ) =>
      new Promise<string[]>((answered, failed) => {
        const metadata = Metadata.fromHttp2Headers(headers);
        if (method === 'Last' || method === 'LastByCall') {
          const call = client[method](metadata, (error, cat) =>
            error === null ? answered([cat.name]) : failed(error),
          );
          return send(call, names);
        }
        const call = client[method](metadata);
        const seen: string[] = [];
        call.on('data', ({ name }: Cat) => seen.push(name));
        call.on('end', () => answered(seen)).on('error', failed);
        return send(call, names);
      });
    return { limits, find, all, stream };
  };

  it('counts calls by peer, forwarded address and metadata, and denies with RESOURCE_EXHAUSTED', async () => {
    const { limits, find } = await start();
    expect(await find({ 'x-api-key': 'a' })).toEqual({ name: 'Tom' });
    const denied = await find({ 'x-api-key': 'a' }).catch((error: ServiceError) => error);
    expect(denied).toMatchObject({ code: 8, details: expect.stringContaining('exceeded') });
    expect((denied as ServiceError).metadata.get('retry-after-ms')).toEqual(['60000']);
    expect(
      await find({ 'x-api-key': 'a', 'x-forwarded-for': '203.0.113.7' }).catch((e: ServiceError) => e.code),
    ).toBe(8);
    expect(await find({ 'x-api-key': 'b', 'x-forwarded-for': '203.0.113.7' })).toEqual({ name: 'Tom' });
    expect((await limits.peek('by-ip', 'ip:203.0.113.7')).remaining).toBe(1);
    expect((await limits.peek('by-ip', 'ip:127.0.0.1')).remaining).toBe(1);
  });

  it('counts a stream once, when it has ended', async () => {
    const { all } = await start();
    expect(await all('free')).toEqual(['Tom', 'free']);
    expect(await all('counted')).toEqual(['Tom', 'counted']);
    await expect(all('counted')).rejects.toMatchObject({ code: 8 });
  });

  for (const [method, answer] of [
    ['Last', ['Kit']],
    ['LastByCall', ['Kit']],
    ['Each', ['Tom', 'Kit']],
    ['EachByCall', ['Tom', 'Kit']],
  ] as const) {
    it(`counts a stream that the client sends once, and denies it as other calls: ${method}`, async () => {
      const { limits, stream } = await start();
      const key = { 'x-api-key': 'a' };
      expect(await stream(method, ['Tom', 'Kit'], key)).toEqual(answer);
      const denied = await stream(method, ['Tom', 'Kit'], key).catch((error: ServiceError) => error);
      expect(denied).toMatchObject({ code: 8, details: expect.stringContaining('exceeded') });
      expect((denied as ServiceError).metadata.get('retry-after-ms')).toEqual(['60000']);
      expect(await stream(method, ['Tom', 'Kit'], { 'x-api-key': 'b' })).toEqual(answer);
      expect((await limits.peek('by-ip', 'ip:127.0.0.1')).remaining).toBe(0);
      clock.advance(60_000);
      expect(await stream(method, ['Tom', 'Kit'], key)).toEqual(answer);
    });
  }

  for (const method of ['LastByCall', 'EachByCall'] as const) {
    it(`answers for handlers that get the call itself, whatever is thrown before them: ${method}`, async () => {
      const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
      const answerTo = async (options: RateLimitModuleOptions) => {
        const { stream } = await start(options);
        return stream(method, ['Tom']).catch(({ code, details }: ServiceError) => [code, details]);
      };
      try {
        const denying = { ...policies, 'by-ip': { limit: 0, ...FIXED } };
        expect(
          await answerTo({ policies: denying, denied: () => new RpcException({ code: 7, message: 'mine' }) }),
        ).toEqual([7, 'mine']);
        expect(await answerTo({ policies: denying, denied: () => new RpcException('text') })).toEqual([
          2,
          'text',
        ]);
        // What clients are not told is logged.
        const failing: PolicyOptions = {
          limit: 1,
          ...FIXED,
          skip: () => {
            throw new Error('secret');
          },
        };
        for (const enforceAt of ['guard', 'interceptor'] as const) {
          error.mockClear();
          expect(await answerTo({ policies: { ...policies, 'by-ip': { ...failing, enforceAt } } })).toEqual([
            2,
            'Internal server error',
          ]);
          expect(error).toHaveBeenCalledTimes(1);
        }
      } finally {
        error.mockRestore();
      }
    });
  }

  it('denies at the interceptor, and in limited methods, where handlers get the call itself', async () => {
    const atInterceptor = { limit: 0, ...FIXED, enforceAt: 'interceptor' } as const;
    const { stream } = await start({ policies: { ...policies, 'by-ip': atInterceptor } });
    for (const method of ['LastByCall', 'EachByCall', 'Limited'] as const)
      await expect(stream(method, ['Tom'])).rejects.toMatchObject({
        code: 8,
        details: expect.stringContaining('exceeded'),
      });
  });

  it('denies with UNAVAILABLE where Redis is away and the policy denies then', async () => {
    const server = await startRedis();
    closing.push(() => server.stop());
    const { find } = await start(onRedis(server));
    const code = () =>
      find({ 'x-api-key': 'a' })
        .then(() => 0)
        .catch((error: ServiceError) => error.code);
    expect([await code(), await code()]).toEqual([0, 8]);
    await server.kill();
    await until(async () => (await code()) === 14);
    await server.restart();
  });
});

describe('over Redis', () => {
  it('counts messages, which carry no address, for everybody together, and says so once', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const server = await startRedis();
    closing.push(() => server.stop());
    try {
      const { limits } = await serve(
        { transport: Transport.REDIS, options: { host: '127.0.0.1', port: server.port } },
        onRedis(server),
      );
      const { send } = await messagesOver(Transport.REDIS, server.port);
      expect(await send('by-ip')).toBe('Tom');
      for (let i = 0; i < 2; i++)
        await expect(send('by-ip')).rejects.toMatchObject({ ...DENIED, retryAfterMs: expect.any(Number) });
      expect((await limits.peek('by-ip', 'global')).remaining).toBe(0);
      const said = warn.mock.calls.map(([message]) => String(message));
      expect(
        said.filter((message) => message.startsWith('RL_NO_ADDRESS: messages with a RedisContext')),
      ).toHaveLength(1);
    } finally {
      warn.mockRestore();
    }
  });
});

/** The hybrid driver. */
function onRedis(server: RedisServer): RateLimitModuleOptions {
  return {
    redis: server.url,
    prefix: 'messages',
    clock: undefined!,
    policies: {
      ...policies,
      'by-ip': { limit: 1, window: '30d', algorithm: 'fixed-window', onUnavailable: 'deny' },
      'by-key': { limit: 100, ...FIXED },
    },
  };
}
