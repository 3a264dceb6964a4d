import { Controller, UseGuards, UseInterceptors, type INestMicroservice } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, Transport, type ClientProxy } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import {
  RateLimit,
  RateLimiterService,
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitModule,
  type CallOutcome,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { firstValueFrom } from 'rxjs';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

const outcomes: CallOutcome[] = [];

@Controller()
class Sums {
  runs = 0;

  @MessagePattern('sum')
  @RateLimit('by-ip', 'by-user')
  sum(values: number[]) {
    this.runs++;
    return values.reduce((a, b) => a + b, 0);
  }

  @MessagePattern('guarded-twice')
  @UseGuards(RateLimitGuard)
  @UseInterceptors(RateLimitInterceptor)
  @RateLimit('twice')
  guardedTwice() {
    return 1;
  }

  @MessagePattern('counted')
  @RateLimit('counted')
  counted(value: number) {
    return value;
  }

  @MessagePattern('both-phases')
  @RateLimit('early', 'late')
  bothPhases() {
    return 1;
  }
}

let service: INestMicroservice;
let client: ClientProxy;
let limits: RateLimiterService;

beforeEach(async () => {
  outcomes.length = 0;
  const testing = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({
        clock: new ManualClock(),
        policies: {
          'by-ip': { limit: 2, ...FIXED },
          'by-user': { limit: 5, ...FIXED, key: 'user' },
          twice: { limit: 9, ...FIXED },
          counted: {
            limit: 9,
            ...FIXED,
            countIf: (outcome) => {
              outcomes.push(outcome);
              return outcome.result !== 0;
            },
          },
          early: { limit: 9, ...FIXED },
          late: { limit: 1, ...FIXED, enforceAt: 'interceptor' },
        },
      }),
    ],
    controllers: [Sums],
  }).compile();
  // Port 0: the system gives one that is free.
  service = testing.createNestMicroservice({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port: 0 },
  });
  service.useLogger(false);
  await service.listen();
  const server = service.unwrap<{ address(): { port: number } }>();
  const { port } = server.address();
  client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  await client.connect();
  limits = service.get(RateLimiterService);
});

afterEach(async () => {
  await client.close();
  await service.close();
});

const send = (pattern: string, data: unknown = [1, 2]) => firstValueFrom(client.send<number>(pattern, data));
const left = async (policy: string) => (await limits.peek(policy, 'ip:127.0.0.1')).remaining;
const DENIED = { code: 'TOO_MANY_REQUESTS', retryAfterMs: 60_000, violatedPolicies: [expect.any(String)] };

it('counts messages by the address of the connection, and where there is none for nobody called undefined', async () => {
  expect([await send('sum'), await send('sum')]).toEqual([3, 3]);
  await expect(send('sum')).rejects.toMatchObject(DENIED);
  expect(service.get(Sums).runs).toBe(2);
  expect(await left('by-ip')).toBe(0);
  expect(await left('by-user')).toBe(3);
  for (const nobody of ['ip:undefined', 'user:undefined', 'undefined']) {
    expect(await limits.peek('by-ip', nobody)).toMatchObject({ remaining: 2 });
  }
});

it('counts a message once, however often the guard is bound', async () => {
  await send('guarded-twice');
  await send('guarded-twice');
  expect(await left('twice')).toBe(7);
});

it('asks countIf when the handler has ended, also for what the guard has charged', async () => {
  await send('counted', 0);
  expect(await left('counted')).toBe(9);
  await send('counted', 5);
  expect(await left('counted')).toBe(8);
  expect(outcomes).toEqual([{ result: 0 }, { result: 5 }]);
});

it('gives back what the guard has charged where the interceptor denies', async () => {
  await send('both-phases');
  expect(await left('early')).toBe(8);
  await expect(send('both-phases')).rejects.toMatchObject(DENIED);
  expect(await left('early')).toBe(8);
});
