// A process of its own for one observer: `guarded.mjs <observer> <clients>`. Its Nest application is not listening: the
// guard is called with a context, a request and a reply for each call, as Nest calls it. The parent says how often.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/internal';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimit, RateLimitGuard, RateLimitModule } from 'nestjs-distlimit';
import { randomVisits } from '../support/keys.mjs';
import { OBSERVERS } from '../support/observers.mjs';

const [name, clients] = process.argv.slice(2);

/** Decorators by hand: this file is not compiled. */
class PingController {
  ping() {}
}
Controller()(PingController);
const ping = Object.getOwnPropertyDescriptor(PingController.prototype, 'ping');
Get('ping')(PingController.prototype, 'ping', ping);
RateLimit('ping')(PingController.prototype, 'ping', ping);

/** Takes headers at no cost: what an observer adds weighs the most so. The adapter knows Fastify's by `status`. */
class Reply {
  header() {}
  status() {}
}

class AppModule {}
const { observers = [], imports = [] } = await OBSERVERS[name]();
const policies = { ping: { limit: 1_000_000_000, window: '1h', algorithm: 'token-bucket' } };
Module({
  imports: [RateLimitModule.forRoot({ policies, observers }), ...imports],
  controllers: [PingController],
})(AppModule);
const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: false });
await app.init();

const guard = app.get(RateLimitGuard);
const handler = PingController.prototype.ping;
const headers = {};
const routeOptions = { url: '/ping' };
const sockets = Array.from({ length: Number(clients) }, (_, i) => ({
  remoteAddress: `203.0.${i >> 8}.${i & 255}`,
}));

function call(socket) {
  const request = { headers, socket, routeOptions };
  const context = new ExecutionContextHost([request, new Reply()], PingController, handler);
  if (guard.canActivate(context) !== true) throw new Error(`${name}: not decided at once`);
}

process.on('message', ({ calls }) => {
  const visits = randomVisits(calls, sockets.length);
  const start = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) call(sockets[visits[i]]);
  process.send({ ns: Number(process.hrtime.bigint() - start) });
});
process.send({ ready: true });
