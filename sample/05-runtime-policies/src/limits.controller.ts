import {
  Body,
  Controller,
  Get,
  Headers,
  Param,
  Patch,
  UnauthorizedException,
  UnprocessableEntityException,
} from '@nestjs/common';
import { RateLimitConfigError, RateLimiterService, SkipRateLimit } from 'nestjs-distlimit';

interface Limits {
  readonly name: string;
  readonly limit: number;
  readonly windowMs: number;
}

/** For operators: what holds now, and changes of it for the whole fleet. */
@Controller('limits')
@SkipRateLimit()
export class LimitsController {
  constructor(private readonly limits: RateLimiterService) {}

  @Get()
  list(): Limits[] {
    return this.limits.policies().map(({ name, limit, windowMs }) => ({ name, limit, windowMs }));
  }

  @Patch(':policy')
  async change(
    @Param('policy') policy: string,
    @Headers('authorization') authorization: string | undefined,
    @Body() patch: { limit?: number; window?: string },
  ): Promise<Limits> {
    const token = process.env.ADMIN_TOKEN ?? 'change-me';
    if (authorization !== `Bearer ${token}`) throw new UnauthorizedException();
    try {
      const { limit, window } = patch;
      const changes = { ...(limit !== undefined && { limit }), ...(window !== undefined && { window }) };
      const { name, ...now } = await this.limits.updatePolicy(policy, changes, { scope: 'fleet' });
      return { name, limit: now.limit, windowMs: now.windowMs };
    } catch (error) {
      // What was wrong with it, and nothing has changed.
      if (error instanceof RateLimitConfigError) throw new UnprocessableEntityException(error.message);
      throw error;
    }
  }
}
