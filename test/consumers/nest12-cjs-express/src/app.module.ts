import { Controller, Get, Module } from '@nestjs/common';
import { RateLimit, RateLimitModule } from 'nestjs-distlimit';

@Controller()
class CatsController {
  @Get('cats')
  @RateLimit({ limit: 3, window: '1m' })
  findAll(): string[] {
    return ['Tom'];
  }
}

@Module({ imports: [RateLimitModule.forRoot({})], controllers: [CatsController] })
export class AppModule {}
