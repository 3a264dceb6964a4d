// A server to put under load: `http-server.mjs <express|fastify> <unguarded|headers|distlimit|throttler>`. Speaks to its parent:
// { port } when it is ready, and for every message { cpuMs, requests } since the last one.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';

const [adapterName, guardName] = process.argv.slice(2);
const LIMIT = 1_000_000_000;
let requests = 0;

/** Decorators by hand: this file is not compiled. */
class PingController {
  ping() {
    requests++;
    return 'pong';
  }
}
Controller()(PingController);
const ping = Object.getOwnPropertyDescriptor(PingController.prototype, 'ping');
Get('ping')(PingController.prototype, 'ping', ping);

/** What each contestant adds. All of them count by the address in `X-Forwarded-For`: the load comes from one machine. */
const GUARDS = {
  unguarded: async () => ({}),
  distlimit: async () => {
    const { RateLimit, RateLimitModule } = await import('nestjs-distlimit');
    RateLimit('ping')(PingController.prototype, 'ping', ping);
    return {
      imports: [
        RateLimitModule.forRoot({
          trustedProxies: 'loopback',
          policies: { ping: { limit: LIMIT, window: '1h', algorithm: 'token-bucket' } },
        }),
      ],
    };
  },
  // What a guard costs that decides nothing: Nest's call of it, and headers as long as a limiter's.
  headers: async () => {
    class HeadersGuard {
      canActivate(context) {
        const response = context.switchToHttp().getResponse();
        setHeader(response, 'RateLimit-Policy', '"ping";q=1000000000;w=3600');
        setHeader(response, 'RateLimit', '"ping";r=999999999;t=1');
        return true;
      }
    }
    return { providers: [{ provide: APP_GUARD, useClass: HeadersGuard }] };
  },
  throttler: async () => {
    const { ThrottlerGuard, ThrottlerModule } = await import('@nestjs/throttler');
    return {
      // Its storage keeps a timer a hit: a window of a second keeps them few, which is to its advantage.
      imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: 1_000, limit: LIMIT }] })],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    };
  },
};

function setHeader(response, name, value) {
  if (adapterName === 'express') response.setHeader(name, value);
  else response.header(name, value);
}

class AppModule {}
const added = await GUARDS[guardName]();
Module({ ...added, controllers: [PingController] })(AppModule);

const adapter =
  adapterName === 'express' ? new ExpressAdapter() : new FastifyAdapter({ trustProxy: 'loopback' });
const app = await NestFactory.create(AppModule, adapter, { logger: false });
if (adapterName === 'express') adapter.getInstance().set('trust proxy', 'loopback');
await app.listen(0, '127.0.0.1');

let before = process.cpuUsage();
process.on('message', () => {
  const { user, system } = process.cpuUsage(before);
  process.send({ cpuMs: (user + system) / 1_000, requests });
  before = process.cpuUsage();
  requests = 0;
});
process.send({ port: app.getHttpServer().address().port });
