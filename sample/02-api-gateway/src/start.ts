import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule, type GatewayOptions } from './app.module.js';
import { startLoadBalancer, startService } from './surroundings.js';

export interface RunningGateway {
  /** The load balancer's: what clients call. */
  readonly url: string;
  readonly app: INestApplication;
  /** Ends one service: the gateway answers 502 for it. */
  stopOrders(): Promise<void>;
  close(): Promise<void>;
}

/** Two services, the gateway in front of them, and a load balancer in front of that, on `port`. */
export async function start(port: number, options: GatewayOptions): Promise<RunningGateway> {
  const [orders, stock] = await Promise.all([startService('orders'), startService('stock')]);
  const app = await NestFactory.create(AppModule.with({ orders: orders.url, stock: stock.url }, options), {
    // Bodies are passed on as they come. A parser would take them first.
    bodyParser: false,
    logger: ['warn', 'error'],
  });
  // Not for other machines: who reaches it around the load balancer could write any address into X-Forwarded-For.
  await app.listen(0, '127.0.0.1');
  const loadBalancer = await startLoadBalancer(await app.getUrl(), port);
  return {
    url: loadBalancer.url,
    app,
    stopOrders: () => orders.close(),
    async close() {
      await loadBalancer.close();
      await app.close();
      await Promise.all([orders.close(), stock.close()]);
    },
  };
}
