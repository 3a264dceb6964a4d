import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-distlimit';
import { CatsController } from './cats.controller.js';
import { LoginController } from './login.controller.js';
import { ReportsController } from './reports.controller.js';
import { ReportsService } from './reports.service.js';

@Module({
  imports: [
    RateLimitModule.forRootAsync({
      useFactory: () => ({
        // Shared by all processes where there is a Redis, else each process counts in its memory.
        redis: process.env.REDIS_URL || undefined,
        // The app is reached directly. Behind a proxy, name the proxy here.
        trustedProxies: 0,
        policies: {
          api: { limit: 20, window: '1m' },
          login: {
            limit: 3,
            window: '1m',
            // After a denial the address stays out this long.
            block: '2m',
            // Only failed logins count.
            countIf: ({ statusCode }) => statusCode === 401,
          },
        },
      }),
    }),
  ],
  controllers: [CatsController, LoginController, ReportsController],
  providers: [ReportsService],
})
export class AppModule {}
