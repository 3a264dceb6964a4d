import 'reflect-metadata';
import { Test } from '@nestjs/testing';
import { RateLimiterService } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { AppModule } from './app.module';

it('boots a testing module with the package in it', async () => {
  const testing = await Test.createTestingModule({ imports: [AppModule] }).compile();
  const app = await testing.init();
  expect(app.get(RateLimiterService)).toBeInstanceOf(RateLimiterService);
  await app.close();
});

it('finds the testing entry point', () => {
  expect(typeof new ManualClock().now()).toBe('number');
});
