import { Controller, Get } from '@nestjs/common';
import { RateLimit } from 'nestjs-distlimit';

@Controller('cats')
export class CatsController {
  @Get()
  @RateLimit('cats')
  list(): string[] {
    return ['Tom', 'Kitty'];
  }
}
