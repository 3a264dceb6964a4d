import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { redisForSample } from '../../support/redis-for-samples.js';
import { AppModule } from './app.module.js';
import { Jobs, type Journal } from './jobs.js';

Logger.overrideLogger(['warn', 'error']);
const redis = await redisForSample();
console.log(`${redis.where} Two instances share their jobs. Ctrl-C ends them.\n`);
if (redis.url === undefined) console.log('In memory they do not know of each other: each runs the report.\n');

/** Prints what is done, and by whom. */
const journal: Journal = [];
journal.push = (...lines) => {
  for (const line of lines) console.log(`${new Date().toISOString().slice(11, 23)}  ${line}`);
  return 0;
};

// Two machines, here in one process.
const instances = await Promise.all(
  ['A', 'B'].map((instance) =>
    NestFactory.createApplicationContext(AppModule.with({ instance, journal, redis: redis.url })),
  ),
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void Promise.all(instances.map((instance) => instance.close())).finally(() => process.exit(0));
  });
}

// Six orders for a partner who takes one a second, on both instances at once.
for (const [i, instance] of [...instances, ...instances, ...instances].entries()) {
  // Who still waits when the application ends is told so.
  instance
    .get(Jobs)
    .callPartner(`order ${i + 1}`)
    .catch((error: unknown) => console.log(`order ${i + 1} was not sent: ${String(error)}`));
}
