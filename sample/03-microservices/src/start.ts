import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { freePort } from '../../support/free-port.js';
import type { Counting } from './counting.js';
import { FrontModule } from './front.module.js';
import { OrdersModule } from './orders.module.js';
import { PricesModule } from './prices.module.js';

export interface RunningServices {
  readonly front: INestApplication;
  /** Ends the service on TCP. */
  stopOrders(): Promise<void>;
  /** Ends the service on gRPC. */
  stopPrices(): Promise<void>;
  close(): Promise<void>;
}

/**
 * The two services, and the front on `port`. Three applications, which know of each other only by their addresses: here
 * in one process, so that one command starts and ends them. Elsewhere each has a process, and a `main.ts`, of its own.
 */
export async function start(port: number, protoPath: string, counting: Counting): Promise<RunningServices> {
  const host = '127.0.0.1';
  const orders = { host, port: await freePort() };
  const prices = { package: 'prices', protoPath, url: `${host}:${await freePort()}` };

  const ordersService = await NestFactory.createMicroservice<MicroserviceOptions>(
    OrdersModule.with(counting),
    { transport: Transport.TCP, options: orders },
  );
  const pricesService = await NestFactory.createMicroservice<MicroserviceOptions>(
    PricesModule.with(counting),
    { transport: Transport.GRPC, options: prices },
  );
  await Promise.all([ordersService.listen(), pricesService.listen()]);

  const front = await NestFactory.create(FrontModule.with({ orders, prices }));
  await front.listen(port);
  return {
    front,
    stopOrders: () => ordersService.close(),
    stopPrices: () => pricesService.close(),
    async close() {
      // Who calls is closed before who is called.
      await front.close();
      await Promise.all([ordersService.close(), pricesService.close()]);
    },
  };
}
