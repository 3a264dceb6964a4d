import { Controller, Get, Module, Req, Res } from '@nestjs/common';
import { ExternalContextCreator, LazyModuleLoader } from '@nestjs/core';
import { RateLimit, RateLimiterService, RateLimitModule } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { ADAPTERS, closeApps, startApp, statuses } from '../support/http-app.js';

const FIXED = { window: '1m', algorithm: 'fixed-window' } as const;

@Controller()
class Late {
  @RateLimit({ limit: 2, ...FIXED })
  plain() {
    return 'plain';
  }

  @RateLimit({ limit: 1, ...FIXED }, { limit: 9, ...FIXED, key: 'user' })
  byUser() {
    return 'by user';
  }
}

@Module({ controllers: [Late] })
class LateModule {}

/** Has Nest run handlers of a module that is loaded with the first call, guards and interceptors around them. */
@Controller()
class Gateway {
  constructor(
    private readonly loader: LazyModuleLoader,
    private readonly contexts: ExternalContextCreator,
  ) {}

  @Get('plain')
  plain(@Req() request: unknown, @Res({ passthrough: true }) response: unknown) {
    return this.#run('plain', request, response);
  }

  @Get('by-user')
  byUser(@Req() request: unknown, @Res({ passthrough: true }) response: unknown) {
    return this.#run('byUser', request, response);
  }

  async #run(name: 'plain' | 'byUser', request: unknown, response: unknown): Promise<unknown> {
    const late = (await this.loader.load(() => LateModule)).get(Late, { strict: false });
    const handler: (...args: unknown[]) => Promise<unknown> = this.contexts.create(late, late[name], name);
    return handler(request, response);
  }
}

afterEach(closeApps);

describe.each(ADAPTERS)('a handler of a module that is loaded later, on %s', (adapter) => {
  const start = async () => {
    const { app, call } = await startApp(adapter, {
      imports: [RateLimitModule.forRoot({ clock: new ManualClock() })],
      controllers: [Gateway],
    });
    return { call, service: app.get(RateLimiterService) };
  };

  it('is limited from its first call on', async () => {
    const { call, service } = await start();
    expect(await statuses(() => call('/plain'), 3)).toEqual([200, 200, 429]);
    expect(service.policies().map(({ name }) => name)).toEqual(['Late.plain']);
  });

  it('is refused each time where it needs an interceptor that is not bound, and leaves no policy behind', async () => {
    const { call, service } = await start();
    expect(await statuses(() => call('/by-user'), 3)).toEqual([500, 500, 500]);
    expect(service.policies()).toEqual([]);
  });
});
