import { Body, ConflictException, Controller, HttpCode, Inject, Post } from '@nestjs/common';
import { RateLimiterService, SkipRateLimit, type Policy } from 'nestjs-distlimit';
import { REDIS, type RedisForSample } from './redis.js';

/** Makes happen what the dashboard shows. An application of your own has no such thing. */
@Controller('drill')
@SkipRateLimit()
export class DrillController {
  constructor(
    @Inject(REDIS) private readonly redis: RedisForSample,
    private readonly limiter: RateLimiterService,
  ) {}

  @Post('outage')
  @HttpCode(204)
  async outage(): Promise<void> {
    this.#requireOwn();
    await this.redis.kill();
  }

  @Post('recovery')
  @HttpCode(204)
  async recovery(): Promise<void> {
    this.#requireOwn();
    await this.redis.restart();
  }

  @Post('limit')
  async limit(@Body() { limit }: { limit: number }): Promise<Pick<Policy, 'name' | 'limit'>> {
    const policy = await this.limiter.updatePolicy('browse', { limit });
    return { name: policy.name, limit: policy.limit };
  }

  #requireOwn(): void {
    if (!this.redis.isOwn)
      throw new ConflictException(`not a Redis of the sample's own. ${this.redis.where}`);
  }
}
