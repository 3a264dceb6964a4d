import { Body, Controller, Get, Module, Post, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimit, RateLimitModule } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';

@Controller('cats')
class CatsController {
  @Get()
  @RateLimit({ limit: 2, window: '1m' })
  list() {
    return ['tom'];
  }
  @Post()
  create(@Body() b: unknown) {
    return b;
  }
}
@Module({ imports: [RateLimitModule.forRoot({ clock: new ManualClock() })], controllers: [CatsController] })
class App {}
describe('guard', () => {
  let app: INestApplication;
  afterEach(() => app.close());
  it('works', async () => {
    const m = await Test.createTestingModule({ imports: [App] }).compile();
    app = m.createNestApplication();
    await app.listen(0);
    const url = await app.getUrl();
    for (let i = 0; i < 4; i++) {
      const r = await fetch(`${url.replace('[::1]', '127.0.0.1')}/cats`);
      console.log(r.status, [...r.headers].join(' | '), await r.text());
    }
  });
});
