import { Controller, Get } from '@nestjs/common';
import { RateLimit } from 'nestjs-distlimit';

@Controller('cats')
export class CatsController {
  /** A named policy: every handler that names `api` shares its counter. */
  @Get()
  @RateLimit('api')
  list(): string[] {
    return ['Tom', 'Kitty'];
  }

  /** The named policy, and an inline one that belongs to this handler alone. */
  @Get('search')
  @RateLimit('api', { limit: 3, window: '10s' })
  search(): string[] {
    return ['Tom'];
  }
}
