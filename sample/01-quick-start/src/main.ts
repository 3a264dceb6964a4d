import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimiterService } from 'nestjs-distlimit';
import { AppModule } from './app.module.js';
import { trySome } from './try-some.js';

const port = Number(process.env.PORT ?? 3000);
Logger.overrideLogger(['warn', 'error']);
const app = await NestFactory.create(AppModule);

try {
  await app.listen(port);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  console.error(
    code === 'EADDRINUSE'
      ? `Port ${port} is in use. Choose another one: PORT=3001 npm start`
      : `The server could not listen on port ${port}: ${message}`,
  );
  process.exit(1);
}

const { port: actualPort } = app.getHttpServer().address() as AddressInfo;
console.log(trySome(actualPort, app.get(RateLimiterService).status()));
