import { limiterBuilder, RateLimitConfigError, type RedisSource } from 'nestjs-distlimit';
import { completeOptions } from '../../../lib/nest/module-options.js';

const SECRET = 'hunter2';
const URL_WITH_SECRET = `redis://app:${SECRET}@redis.example:6379`;

function problemOf(run: () => unknown): RateLimitConfigError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(RateLimitConfigError);
    return error as RateLimitConfigError;
  }
  throw new Error('nothing was thrown');
}

describe('an error about options', () => {
  it.each<[string, () => unknown, string]>([
    ['a hashKeys that is too short', () => completeOptions({ hashKeys: SECRET }), 'text of 7 characters'],
    [
      'a hashKeys that is no text',
      () => completeOptions({ hashKeys: { key: SECRET } as never }),
      'an object',
    ],
    [
      'a hashKeys in the wrong place',
      () => completeOptions({ driver: URL_WITH_SECRET as never }),
      '"redis://…@redis.example:6379"',
    ],
    [
      'a password with a slash and an @ in it',
      () => completeOptions({ driver: `redis://app:${SECRET}/@${SECRET}@redis.example` as never }),
      '"redis://…@redis.example"',
    ],
  ])('never shows a secret: %s', (_title, run, received) => {
    const problem = problemOf(run);
    expect(problem.message).not.toContain(SECRET);
    expect(problem.received).toBe(received);
  });

  it.each<[string, RedisSource]>([
    ['a URL that is none', URL_WITH_SECRET.replace('redis:', 'http:')],
    ['options of nowhere', { hots: 'redis.example', password: SECRET }],
    ['a port that is none', { host: 'redis.example', port: URL_WITH_SECRET }],
  ])('never shows how Redis is reached: %s', (_title, redis) => {
    const { message, received } = problemOf(() => limiterBuilder(redis).driver('redis').build());
    expect(`${message} ${received}`).not.toContain(SECRET);
  });
});
