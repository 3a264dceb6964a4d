import { Module, type DynamicModule } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-distlimit';
import { GatewayController, SERVICES, type Services } from './gateway.controller.js';
import { customerOrAddress, Plans } from './plans.js';

export interface GatewayOptions {
  /** Left out: each gateway counts in its memory. */
  readonly redis: string | undefined;
  readonly prefix?: string;
}

@Module({})
export class AppModule {
  static with(services: Services, { redis, prefix = 'sample-02' }: GatewayOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        RateLimitModule.forRoot({
          // With Redis this is the hybrid driver: one count for all gateways, and while Redis is away each has its share.
          ...(redis !== undefined && { redis, prefix, hybrid: { expectedInstances: 1 } }),
          // One load balancer is in front, and nobody reaches the gateway around it. Here all have the address of this
          // machine, so hops are counted. Where yours have addresses of their own, name those: ['10.20.0.0/16'].
          trustedProxies: 1,
          policies: {
            // The numbers of those without a plan. Sync, and never empty, so that the guard can decide all three at once.
            plan: { limit: 5, window: '1m', key: customerOrAddress },
            // However many keys are used from one address.
            address: { limit: 300, window: '1m', key: 'ip' },
            // What a service can stand, from all callers together.
            service: { limit: 200, window: '1s', key: 'route' },
          },
          resolver: new Plans(),
        }),
      ],
      controllers: [GatewayController],
      providers: [{ provide: SERVICES, useValue: services }],
    };
  }
}
