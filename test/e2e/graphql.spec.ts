import { Logger, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import {
  Args,
  GqlExecutionContext,
  GraphQLModule,
  Mutation,
  Query,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { GraphQLError } from 'graphql';
import { createClient } from 'graphql-ws';
import {
  CommonLimit,
  RateLimit,
  RateLimiterService,
  RateLimitModule,
  RateLimitVerdict,
  type CallContext,
  type CallOutcome,
  type PolicyOptions,
  type RateLimitModuleOptions,
  type Verdict,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { WebSocket } from 'ws';
import { closeApps, startApp } from '../support/http-app.js';
import { startRedis, until } from '../support/redis-servers.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

let clock: ManualClock;
let calls: CallContext[];
let outcomes: CallOutcome[];

/** Logs in whom a header names. */
class LogIn implements CanActivate {
  canActivate(context: ExecutionContext) {
    const { req } = GqlExecutionContext.create(context).getContext<{
      req: { headers: Record<string, string>; user?: object };
    }>();
    req.user = { id: req.headers['x-user'] };
    return true;
  }
}

@Resolver()
class Cats {
  @Query(() => String)
  @RateLimit('by-ip')
  cat(@Args('name', { nullable: true, type: () => String }) name?: string) {
    return name ?? 'Tom';
  }

  @Query(() => String)
  @UseGuards(LogIn)
  @RateLimit('by-user')
  me() {
    return 'me';
  }

  @Query(() => Number)
  @RateLimit('by-ip')
  left(@RateLimitVerdict() verdict: Verdict) {
    return verdict.remaining;
  }

  @Mutation(() => String)
  @RateLimit('counted')
  rename(@Args('name') name: string) {
    return name;
  }

  @Query(() => String, { nullable: true })
  @CommonLimit({ limit: 0, ...FIXED })
  async method() {
    return 'never';
  }

  @Query(() => String)
  @RateLimit('shaped')
  shaped() {
    return 'shaped';
  }

  @Subscription(() => String, { resolve: (value: string) => value })
  @RateLimit('subscriptions')
  async *cats() {
    yield 'Tom';
    yield 'Kit';
  }
}

const policies: Record<string, PolicyOptions> = {
  'by-ip': {
    limit: 3,
    ...FIXED,
    skip: (call) => {
      calls.push(call);
      return false;
    },
  },
  'by-user': { limit: 1, ...FIXED, key: 'user' },
  counted: {
    limit: 1,
    ...FIXED,
    countIf: (outcome) => {
      outcomes.push(outcome);
      return outcome.result !== 'free';
    },
  },
  shaped: { limit: 1, window: '10s', algorithm: 'leaky-bucket', burst: 3 },
  subscriptions: { limit: 1, ...FIXED },
};

beforeEach(() => {
  clock = new ManualClock();
  calls = [];
  outcomes = [];
});

afterEach(closeApps);

interface Answer {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

/** The servers of `@nestjs/graphql`, each on an adapter. */
const SERVERS = {
  'Apollo on Express': {
    adapter: 'express',
    module: () =>
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        playground: false,
        subscriptions: { 'graphql-ws': true },
        allowBatchedHttpRequests: true,
      }),
  },
  'Apollo on Fastify': {
    adapter: 'fastify',
    module: () =>
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        playground: false,
        allowBatchedHttpRequests: true,
        subscriptions: { 'graphql-ws': true },
        context: (req: unknown, res: unknown) => ({ req, res }),
      }),
  },
  'Mercurius on Fastify': {
    adapter: 'fastify',
    module: () =>
      GraphQLModule.forRoot<MercuriusDriverConfig>({
        driver: MercuriusDriver,
        autoSchemaFile: true,
        graphiql: false,
        allowBatchedQueries: true,
        subscription: true,
      }),
  },
} as const;
type Server = keyof typeof SERVERS;

async function start(options: RateLimitModuleOptions = {}, server: Server = 'Apollo on Express') {
  const { adapter, module } = SERVERS[server];
  const { app, call } = await startApp(adapter, {
    imports: [
      RateLimitModule.forRoot({ clock, policies, trustedProxies: ['loopback'], ...options }),
      module(),
    ],
    providers: [Cats],
  });
  const post = async (body: object, headers: Record<string, string> = {}) => {
    const { headers: answered, body: text } = await call('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { headers: answered, answer: JSON.parse(text) as Answer };
  };
  const ask = async (query: string, headers?: Record<string, string>) =>
    (await post({ query }, headers)).answer;
  return { app, post, ask, limits: app.get(RateLimiterService) };
}

const deniedBy = (policy: string, retryAfterMs: number | null = 60_000) => [
  expect.objectContaining({
    message: expect.stringContaining('exceeded'),
    extensions: expect.objectContaining({
      code: 'TOO_MANY_REQUESTS',
      retryAfterMs,
      violatedPolicies: [policy],
    }),
  }),
];

describe.each(Object.keys(SERVERS) as Server[])('%s', (server) => {
  it('logs no denial as a failure of the server', async () => {
    const error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    try {
      const { ask } = await start({}, server);
      const aliases = Array.from({ length: 50 }, (_, i) => `a${i}: cat`).join(' ');
      const { errors } = await ask(`{ ${aliases} m1: method m2: method }`);
      expect(errors?.length).toBeGreaterThan(0);
      expect(error).not.toHaveBeenCalled();
    } finally {
      error.mockRestore();
    }
  });

  it('counts each field that is asked for, aliases and batches too, and sends headers', async () => {
    const { post, ask, limits } = await start({}, server);
    const forwarded = { 'x-forwarded-for': '203.0.113.7' };
    expect(await ask('{ a: cat b: cat c: left }', forwarded)).toEqual({ data: { a: 'Tom', b: 'Tom', c: 0 } });
    const { headers, answer } = await post({ query: '{ cat }' }, forwarded);
    expect(answer.errors).toEqual(deniedBy('by-ip'));
    expect(headers.get('ratelimit')).toBe('"by-ip";r=0;t=60');
    expect(headers.get('retry-after')).toBe('60');
    const batch = await post([{ query: '{ cat }' }, { query: '{ left }' }]);
    expect(batch.answer).toEqual([{ data: { cat: 'Tom' } }, { data: { left: 1 } }]);
    expect((await limits.peek('by-ip', 'ip:203.0.113.7')).remaining).toBe(0);
    expect(calls.at(-1)).toMatchObject({ transport: 'graphql', ip: '127.0.0.1', route: 'Query.left' });
    clock.advance(60_000);
    expect(await ask('{ cat(name: "Kit") }', forwarded)).toEqual({ data: { cat: 'Kit' } });
  });

  it('counts by the user of the request, and mutations by their results', async () => {
    const { ask, limits } = await start({}, server);
    expect(await ask('{ me }', { 'x-user': 'ann' })).toEqual({ data: { me: 'me' } });
    expect((await ask('{ me }', { 'x-user': 'ann' })).errors).toEqual(deniedBy('by-user'));
    expect(await ask('{ me }', { 'x-user': 'bob' })).toEqual({ data: { me: 'me' } });
    for (const name of ['free', 'Kit']) {
      expect(await ask(`mutation { rename(name: "${name}") }`)).toEqual({ data: { rename: name } });
    }
    expect((await ask('mutation { rename(name: "free") }')).errors).toEqual(deniedBy('counted'));
    expect(outcomes).toEqual([{ result: 'free' }, { result: 'Kit' }]);
    expect((await limits.peek('by-user', 'user:ann')).remaining).toBe(0);
  });

  it('denies in the same form where a limited method does, and as `denied` says where that is given', async () => {
    const { ask } = await start({}, server);
    expect((await ask('{ method }')).errors).toEqual(deniedBy('RootTestModule.Cats.method', null));
    const own = await start(
      {
        denied: ({ route }) => new GraphQLError('mine', { extensions: { code: route } }),
        policies: { ...policies, 'by-ip': { limit: 0, ...FIXED } },
      },
      server,
    );
    expect((await own.ask('{ cat }')).errors).toMatchObject([
      { message: 'mine', extensions: { code: 'Query.cat' } },
    ]);
  });

  it('holds fields of a leaky bucket until their turn', async () => {
    const { ask, limits } = await start({}, server);
    const asked = ask('{ a: shaped b: shaped }');
    await until(async () => (await limits.peek('shaped', 'ip:127.0.0.1')).remaining === 1);
    clock.advance(10_000);
    expect(await asked).toEqual({ data: { a: 'shaped', b: 'shaped' } });
  });
});

it.each(Object.keys(SERVERS) as Server[])(
  'counts a subscription once, by the address of its connection: %s',
  async (server) => {
    const { app, limits } = await start({}, server);
    const { port } = app.getHttpServer().address() as { port: number };
    const client = createClient({ url: `ws://127.0.0.1:${port}/graphql`, webSocketImpl: WebSocket });
    const subscribe = async () => {
      const seen: unknown[] = [];
      for await (const answer of client.iterate({ query: 'subscription { cats }' })) seen.push(answer);
      return seen;
    };
    try {
      expect(await subscribe()).toEqual([{ data: { cats: 'Tom' } }, { data: { cats: 'Kit' } }]);
      expect((await limits.peek('subscriptions', 'ip:127.0.0.1')).remaining).toBe(0);
      // Apollo answers a subscription that is denied with a result; Mercurius, as the protocol has it, with an error.
      await expect(
        subscribe().then((seen) => {
          throw (seen[0] as Answer).errors;
        }),
      ).rejects.toEqual(deniedBy('subscriptions'));
    } finally {
      await client.dispose();
    }
  },
);

it('says that a service is unavailable where Redis is and the policy denies then', async () => {
  const server = await startRedis();
  try {
    const { ask } = await start({
      redis: server.url,
      prefix: 'graphql',
      clock: undefined!,
      policies: { ...policies, 'by-ip': { limit: 1, window: '30d', onUnavailable: 'deny' } },
    });
    const code = async () => (await ask('{ cat }')).errors?.[0]?.extensions.code;
    expect([await code(), await code()]).toEqual([undefined, 'TOO_MANY_REQUESTS']);
    await server.kill();
    await until(async () => (await code()) === 'SERVICE_UNAVAILABLE');
    await server.restart();
  } finally {
    await server.stop();
  }
});
