import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NestFactory } from '@nestjs/core';
import { redisForSample } from '../../support/redis-for-samples.js';
import { AppModule } from './app.module.js';

// From dist/05-runtime-policies/src.
const file = fileURLToPath(new URL('../../../rate-limits.yaml', import.meta.url));
const redis = await redisForSample();
const app = await NestFactory.create(AppModule.with({ file, redis: redis.url }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void app.close().finally(() => process.exit(0)));
}

await app.listen(process.env.PORT ?? 3000);
const { port } = app.getHttpServer().address() as AddressInfo;
const url = `http://localhost:${port}`;
console.log(`
Listening on ${url}. ${redis.where}

  curl -i -H "x-tenant: small" ${url}/cats        5 a minute: edit ${relative(process.cwd(), file)}, and see
  curl -i -H "x-tenant: acme" ${url}/cats         1,000: its plan is in src/plans.ts
  curl -s ${url}/limits
  curl -s -X PATCH -H "authorization: Bearer change-me" -H "content-type: application/json" \\
    -d '{"limit":8}' ${url}/limits/cats           for every instance, and those that start later
`);
