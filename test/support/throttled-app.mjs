// An application with @nestjs/throttler on the Nest of this project, and this library's storage. Tells its parent the port.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

const { DistlimitThrottlerStorage } = await import(process.argv[2]);

/** Decorators by hand: this file is not compiled. */
class CatsController {
  cats() {
    return 'Tom';
  }
}
Controller()(CatsController);
Get('cats')(
  CatsController.prototype,
  'cats',
  Object.getOwnPropertyDescriptor(CatsController.prototype, 'cats'),
);

class AppModule {}
Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ limit: 3, ttl: 60_000 }],
      storage: new DistlimitThrottlerStorage(),
    }),
  ],
  controllers: [CatsController],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: false });
await app.listen(0, '127.0.0.1');
process.send(app.getHttpServer().address().port);
