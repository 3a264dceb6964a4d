import { Module, type DynamicModule } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { PrometheusModule } from '@willsoto/nestjs-prometheus';
import { RateLimitModule } from 'nestjs-distlimit';
import { RateLimitPrometheusModule } from 'nestjs-distlimit/prometheus';
import { RateLimitHealthIndicator } from 'nestjs-distlimit/terminus';
import { DrillController } from './drill.controller.js';
import { HealthController } from './health.controller.js';
import { ShopController } from './shop.controller.js';
import { REDIS, type RedisForSample } from './redis.js';

@Module({})
export class AppModule {
  static with(redis: RedisForSample): DynamicModule {
    return {
      module: AppModule,
      imports: [
        RateLimitModule.forRoot({
          ...(redis.url !== undefined && {
            redis: redis.url,
            // Shorter than in production: an outage, and the way back, can be watched.
            hybrid: { coolOffMs: 1_000, heartbeatMs: 500, expectedInstances: 1 },
          }),
          prefix: 'sample-06',
          trustedProxies: 0,
          // Few, so that making room can be watched too.
          memory: { maxKeys: 500 },
          policies: {
            browse: { limit: 40, window: '1m', key: 'header:x-customer' },
            order: { limit: 5, window: '5s', algorithm: 'fixed-window', key: 'header:x-customer' },
            // Counted and told, never denied: would this limit hurt?
            'tighter-order': { limit: 2, window: '5s', mode: 'shadow', key: 'header:x-customer' },
          },
        }),
        // Serves /metrics.
        PrometheusModule.register(),
        RateLimitPrometheusModule.forRoot({ routeLabel: true }),
        TerminusModule,
      ],
      controllers: [ShopController, HealthController, DrillController],
      providers: [RateLimitHealthIndicator, { provide: REDIS, useValue: redis }],
    };
  }
}
