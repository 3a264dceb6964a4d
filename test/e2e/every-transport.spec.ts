import { fileURLToPath } from 'node:url';
import { Controller, Get, UseGuards, UseInterceptors, type ModuleMetadata, type Type } from '@nestjs/common';
import { credentials, loadPackageDefinition, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Args, GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import {
  ClientProxyFactory,
  GrpcMethod,
  MessagePattern,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  type CallContext,
  type PolicyOptions,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { firstValueFrom } from 'rxjs';
import { closeApps, startApp } from '../support/http-app.js';
import { freePort, startRedis, type RedisServer } from '../support/redis-servers.js';
import { WS_KINDS } from '../support/ws-clients.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;
const PROTO = fileURLToPath(new URL('../support/limited.proto', import.meta.url));
const NAMES = ['shadow', 'block', 'cost'] as const;
type Name = (typeof NAMES)[number];

/** What the caller says that the call costs, wherever its transport has that. */
function unitsOf({ args, request }: CallContext): number {
  const bodies = [...args, (request as { query?: unknown } | undefined)?.query] as (Units | undefined)[];
  return Number(bodies.find((body) => body?.units !== undefined)!.units);
}
interface Units {
  readonly units?: unknown;
}

const policies = {
  shadow: { limit: 1, ...FIXED, mode: 'shadow' },
  block: { limit: 1, ...FIXED, block: '10m' },
  cost: { limit: 5, ...FIXED, cost: unitsOf },
} satisfies Record<Name, PolicyOptions>;

/** What the module is given for each driver. */
const STORES = {
  memory: () => ({}),
  hybrid: () => ({ redis: server.url, prefix: `every-transport-${prefixes++}` }),
};
type Store = keyof typeof STORES;
const SERVED_BY = { memory: 'memory', hybrid: 'redis' } satisfies Record<Store, string>;

let server: RedisServer;
let prefixes = 0;
let clock: ManualClock;
let closing: (() => unknown)[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

beforeEach(() => {
  clock = new ManualClock();
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  await closeApps();
});

/** `done`, or in how many milliseconds to try again. */
type Ask = (name: Name, units: number) => Promise<unknown>;

interface Case {
  readonly transport: string;
  readonly start: (store: Store) => Promise<{ ask: Ask; limits: RateLimiterService }>;
}

/** A class with a handler for each policy. */
function handlers(
  ofClass: ClassDecorator,
  ofHandler: (name: Name) => MethodDecorator,
  answer: unknown = 'done',
): Type {
  class Handlers {
    shadow() {
      return answer;
    }
    block() {
      return answer;
    }
    cost() {
      return answer;
    }
  }
  for (const name of NAMES) {
    const descriptor = Object.getOwnPropertyDescriptor(Handlers.prototype, name)!;
    for (const decorate of [ofHandler(name), RateLimit(name)]) decorate(Handlers.prototype, name, descriptor);
  }
  ofClass(Handlers);
  return Handlers;
}

const imports = (store: Store) => [RateLimitModule.forRoot({ clock, policies, ...STORES[store]() })];

async function microservice(store: Store, metadata: ModuleMetadata, options: MicroserviceOptions) {
  const testing = await Test.createTestingModule({ imports: imports(store), ...metadata }).compile();
  const service = testing.createNestMicroservice(options);
  service.useLogger(false);
  closing.push(() => service.close());
  await service.listen();
  return service.get(RateLimiterService);
}

const http: Case = {
  transport: 'HTTP',
  async start(store) {
    const controllers = [handlers(Controller(), (name) => Get(name))];
    const { app, call } = await startApp('express', { imports: imports(store), controllers });
    const ask: Ask = async (name, units) => {
      const { status, headers, body } = await call(`/${name}?units=${units}`);
      return status === 200 ? body : Number(headers.get('retry-after')) * 1_000;
    };
    return { ask, limits: app.get(RateLimiterService) };
  },
};

const graphql: Case = {
  transport: 'GraphQL',
  async start(store) {
    const resolver = handlers(Resolver(), (name) => (target, key, descriptor) => {
      // What the compiler would have written of the parameter.
      Reflect.defineMetadata('design:paramtypes', [Number], target, key);
      Args('units', { type: () => Int })(target, key, 0);
      Query(() => String, { name })(target, key, descriptor);
    });
    const { app, call } = await startApp('express', {
      imports: [
        ...imports(store),
        GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          autoSchemaFile: true,
          playground: false,
        }),
      ],
      providers: [resolver],
    });
    const ask: Ask = async (name, units) => {
      const { body } = await call('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: `{ ${name}(units: ${units}) }` }),
      });
      const { data, errors } = JSON.parse(body) as {
        data: Record<Name, string> | null;
        errors?: { extensions: { retryAfterMs: number } }[];
      };
      return errors === undefined ? data?.[name] : errors[0]!.extensions.retryAfterMs;
    };
    return { ask, limits: app.get(RateLimiterService) };
  },
};

const sockets = WS_KINDS.map(({ name: transport, adapter, connect }): Case => ({
  transport,
  async start(store) {
    const ofClass = (target: Function) => {
      // Nest 11 gives gateways nothing global.
      for (const decorate of [
        UseGuards(RateLimitGuard),
        UseInterceptors(RateLimitInterceptor),
        WebSocketGateway(),
      ])
        decorate(target);
    };
    const gateway = handlers(ofClass, SubscribeMessage, { event: 'answer', data: 'done' });
    const { app } = await startApp('express', { imports: imports(store), providers: [gateway] }, (made) =>
      made.useWebSocketAdapter(adapter(made)),
    );
    const client = await connect((app.getHttpServer().address() as { port: number }).port);
    closing.push(() => client.close());
    const ask: Ask = async (name, units) => {
      client.send(name, { units });
      const { data } = await client.next();
      return typeof data === 'string' ? data : (data as { retryAfterMs: number }).retryAfterMs;
    };
    return { ask, limits: app.get(RateLimiterService) };
  },
}));

const tcp: Case = {
  transport: 'TCP',
  async start(store) {
    const options = { host: '127.0.0.1', port: await freePort() };
    const controllers = [handlers(Controller(), (name) => MessagePattern(name))];
    const limits = await microservice(store, { controllers }, { transport: Transport.TCP, options });
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing.push(() => client.close());
    const ask: Ask = (name, units) =>
      firstValueFrom(client.send<unknown>(name, { units })).catch(
        ({ retryAfterMs }: { retryAfterMs: number }) => retryAfterMs,
      );
    return { ask, limits };
  },
};

interface GrpcClient extends Record<
  string,
  (body: object, done: (error: ServiceError | null, answer?: { done: string }) => void) => void
> {
  close(): void;
}

const grpc: Case = {
  transport: 'gRPC',
  async start(store) {
    const url = `127.0.0.1:${await freePort()}`;
    const controllers = [
      handlers(Controller(), (name) => GrpcMethod('Limited', rpcOf(name)), {
        done: 'done',
      }),
    ];
    const options = { package: 'limited', protoPath: PROTO, url };
    const limits = await microservice(store, { controllers }, { transport: Transport.GRPC, options });
    const { limited } = loadPackageDefinition(loadSync(PROTO)) as never as {
      limited: { Limited: new (url: string, credentials: unknown) => GrpcClient };
    };
    const client = new limited.Limited(url, credentials.createInsecure());
    closing.push(() => client.close());
    const ask: Ask = (name, units) =>
      new Promise((resolve) =>
        client[rpcOf(name)]!({ units }, (error, answer) =>
          resolve(error === null ? answer!.done : Number(error.metadata.get('retry-after-ms')[0])),
        ),
      );
    return { ask, limits };
  },
};

function rpcOf(name: Name): string {
  return name[0]!.toUpperCase() + name.slice(1);
}

const CASES = [http, graphql, ...sockets, tcp, grpc].flatMap((each) =>
  (Object.keys(STORES) as Store[]).map((store) => ({ ...each, store })),
);

describe.each(CASES)('over $transport, driver $store', ({ start, store }) => {
  it('a policy in shadow mode counts, and denies nothing', async () => {
    const { ask, limits } = await start(store);
    expect([await ask('shadow', 1), await ask('shadow', 1)]).toEqual(['done', 'done']);
    expect(await limits.peek('shadow', 'ip:127.0.0.1')).toMatchObject({
      remaining: 0,
      servedBy: SERVED_BY[store],
    });
  });

  it('a policy with a block keeps a denied caller out for its time', async () => {
    const { ask } = await start(store);
    expect([await ask('block', 1), await ask('block', 1)]).toEqual(['done', 600_000]);
    clock.advance(540_000);
    expect(await ask('block', 1)).toBe(60_000);
    clock.advance(60_000);
    expect(await ask('block', 1)).toBe('done');
  });

  it('a policy with a cost takes so much, or nothing', async () => {
    const { ask, limits } = await start(store);
    expect([await ask('cost', 3), await ask('cost', 3), await ask('cost', 2)]).toEqual([
      'done',
      60_000,
      'done',
    ]);
    expect((await limits.peek('cost', 'ip:127.0.0.1')).remaining).toBe(0);
  });
});
