import { Controller, type INestMicroservice } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, Transport, type ClientProxy } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { RateLimit, RateLimiterService, RateLimitModule } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { createServer, type AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

@Controller()
class Sums {
  @MessagePattern('sum')
  @RateLimit('by-ip', 'by-user')
  sum(values: number[]) {
    return values.reduce((a, b) => a + b, 0);
  }
}

let service: INestMicroservice;
let client: ClientProxy;

beforeEach(async () => {
  const port = await freePort();
  const testing = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({
        clock: new ManualClock(),
        policies: { 'by-ip': { limit: 2, ...FIXED }, 'by-user': { limit: 5, ...FIXED, key: 'user' } },
      }),
    ],
    controllers: [Sums],
  }).compile();
  service = testing.createNestMicroservice({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
  });
  service.useLogger(false);
  await service.listen();
  client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  await client.connect();
});

afterEach(async () => {
  await client.close();
  await service.close();
});

it('counts messages, which carry no address, for everybody together and not for somebody called undefined', async () => {
  const sum = () => firstValueFrom(client.send<number>('sum', [1, 2]));
  expect([await sum(), await sum()]).toEqual([3, 3]);
  await expect(sum()).rejects.toBeDefined();
  const limits = service.get(RateLimiterService);
  expect(await limits.peek('by-ip', 'global')).toMatchObject({ remaining: 0 });
  expect(await limits.peek('by-user', 'global')).toMatchObject({ remaining: 3 });
  for (const nobody of ['ip:undefined', 'user:undefined', 'undefined']) {
    expect(await limits.peek('by-ip', nobody)).toMatchObject({ remaining: 2 });
  }
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return port;
}
