import { Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import { RateLimit } from 'nestjs-distlimit';

@Controller('shop')
export class ShopController {
  @Get(':article')
  @RateLimit('browse')
  article(@Param('article') article: string): { article: string } {
    return { article };
  }

  @Post('orders')
  @HttpCode(202)
  @RateLimit('order', 'tighter-order')
  order(): { accepted: boolean } {
    return { accepted: true };
  }
}
