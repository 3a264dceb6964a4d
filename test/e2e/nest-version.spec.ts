import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { Controller, Get, Module } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { PrometheusModule } from '@willsoto/nestjs-prometheus';

/** Set by the jest project that runs this file. */
declare const NEST_MAJOR: 11 | 12;

@Controller()
class HelloController {
  @Get('hello')
  hello(): string {
    return 'hello';
  }
}

@Module({
  // A CJS package that requires Nest: under Nest 12, which is ESM only, it needs the transform of jest.config.ts.
  imports: [PrometheusModule.register()],
  controllers: [HelloController],
})
class HelloModule {}

describe(`the project for Nest ${NEST_MAJOR}`, () => {
  it.each(['common', 'core', 'platform-express', 'platform-fastify', 'testing'])(
    'loads @nestjs/%s of that major',
    async (name) => {
      const manifest = new URL('./package.json', import.meta.resolve(`@nestjs/${name}`));
      const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
      expect(Number.parseInt(version, 10)).toBe(NEST_MAJOR);

      // Only the CommonJS packages of Nest 11 have a default export, so this tells what really ran.
      const loaded = (await import(`@nestjs/${name}`)) as object;
      expect('default' in loaded).toBe(NEST_MAJOR === 11);
    },
  );

  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('serves a request on %s', async (_name, adapter) => {
    const testing = await Test.createTestingModule({ imports: [HelloModule] }).compile();
    const app = testing.createNestApplication(adapter());
    try {
      await app.listen(0, '127.0.0.1');
      const response = await fetch(`${await app.getUrl()}/hello`);
      expect([response.status, await response.text()]).toEqual([200, 'hello']);
    } finally {
      await app.close();
    }
  });
});
