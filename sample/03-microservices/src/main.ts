import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Logger } from '@nestjs/common';
import { redisForSample } from '../../support/redis-for-samples.js';
import { start } from './start.js';

Logger.overrideLogger(['warn', 'error']);
// From dist/03-microservices/src.
const proto = fileURLToPath(new URL('../../../prices.proto', import.meta.url));
const redis = await redisForSample();
const services = await start(Number(process.env.PORT ?? 3000), proto, { redis: redis.url });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void services.close().finally(() => process.exit(0)));
}

const { port } = services.front.getHttpServer().address() as AddressInfo;
const url = `http://localhost:${port}`;
console.log(`
The front listens on ${url}, with a service on TCP and one on gRPC behind it. ${redis.where}
Try these in another terminal, within a minute:

  curl -s -w " %{http_code}\\n" -H "x-customer: ann" "${url}/orders/[1-4]"
    200 three times, then 429: the service on TCP has denied the call, and the front says so

  curl -s -w " %{http_code}\\n" -H "x-customer: ann" "${url}/prices/[1-3]"
    200 twice, then 429: the same from the service on gRPC

  curl -i -H "x-customer: ann" ${url}/prices/4
    429 with Retry-After, from the service's metadata

  curl -i -H "x-customer: bob" ${url}/prices/4
    200: each customer has a quota
`);
