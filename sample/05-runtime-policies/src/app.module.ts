import { Module, type DynamicModule } from '@nestjs/common';
import { cachedResolver, fileSource, RateLimitModule, redisSource } from 'nestjs-distlimit';
import { CatsController } from './cats.controller.js';
import { LimitsController } from './limits.controller.js';
import { Plans } from './plans.js';

export interface RuntimeOptions {
  readonly file: string;
  /** Without one there is no fleet to change limits for. */
  readonly redis: string | undefined;
  readonly prefix?: string;
}

@Module({})
export class AppModule {
  static with({ file, redis, prefix = 'sample-05' }: RuntimeOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        RateLimitModule.forRoot({
          ...(redis !== undefined && { redis, prefix, hybrid: { expectedInstances: 1 } }),
          // The code says who is counted. How many is the file's to say, and over it the fleet's.
          policies: { cats: { limit: 1, window: '1m', algorithm: 'fixed-window', key: 'header:x-tenant' } },
          sources: [fileSource(file), ...(redis === undefined ? [] : [redisSource()])],
          resolver: cachedResolver(new Plans(), { ttl: '10s' }),
        }),
      ],
      controllers: [CatsController, LimitsController],
    };
  }
}
