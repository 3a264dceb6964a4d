import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, type HealthCheckResult } from '@nestjs/terminus';
import { SkipRateLimit } from 'nestjs-distlimit';
import { RateLimitHealthIndicator } from 'nestjs-distlimit/terminus';

@Controller('health')
@SkipRateLimit()
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly limits: RateLimitHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.limits.isHealthy('rate-limits')]);
  }
}
