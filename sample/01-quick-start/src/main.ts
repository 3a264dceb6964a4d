import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as distlimit from 'nestjs-distlimit';

@Controller()
class AppController {
  @Get()
  hello(): string[] {
    return Object.keys(distlimit);
  }
}

@Module({ controllers: [AppController] })
class AppModule {}

const app = await NestFactory.create(AppModule);
await app.listen(Number(process.env.PORT ?? 3000));
