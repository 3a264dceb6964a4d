import { Body, Controller, HttpCode, Post, UnauthorizedException } from '@nestjs/common';
import { RateLimit } from 'nestjs-distlimit';

@Controller('login')
export class LoginController {
  @Post()
  @HttpCode(200)
  @RateLimit('login')
  login(@Body() body?: { password?: string }): { welcome: boolean } {
    if (body?.password !== 'secret') throw new UnauthorizedException('wrong password');
    return { welcome: true };
  }
}
