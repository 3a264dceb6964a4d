import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { sendLoad } from './load.js';
import { redisForSample } from './redis.js';

const redis = await redisForSample();
const app = await NestFactory.create(AppModule.with(redis));
const load = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    load.abort();
    void app.close().finally(() => process.exit(0));
  });
}

await app.listen(process.env.PORT ?? 3000);
const { port } = app.getHttpServer().address() as AddressInfo;
const url = `http://localhost:${port}`;
if (process.env.LOAD !== 'off') void sendLoad(url, load.signal);

console.log(`
Listening on ${url}. ${redis.where}
${process.env.LOAD === 'off' ? 'No load is sent (LOAD=off).' : 'Customers browse and order; LOAD=off is without them.'}

  curl -s ${url}/metrics | grep ^distlimit_
  curl -s ${url}/health
  prometheus --config.file=sample/06-observability/prometheus.yml --storage.tsdb.path=/tmp/sample-06
${
  redis.isOwn
    ? `
  curl -X POST ${url}/drill/outage      kills Redis: see the log, /health and the dashboard
  curl -X POST ${url}/drill/recovery    starts it again, empty
`
    : ''
}`);
