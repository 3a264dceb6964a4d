import { cachedResolver, type PolicyResolver, type ResolverRequest } from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';

const charges = (...subjects: string[]): ResolverRequest => ({
  charges: subjects.map((subject) => ({ policy: 'api', subject })),
});

/** Answers what `limits` says, as often as it is asked; notes what it was asked for. */
function counting(limits: Record<string, number>, isAsync: boolean) {
  const asked: string[][] = [];
  const resolver: PolicyResolver = {
    resolve(request) {
      asked.push(request.charges.map(({ subject }) => subject));
      const answer = request.charges.map(({ subject }) =>
        subject in limits ? { limit: limits[subject]! } : undefined,
      );
      return isAsync ? Promise.resolve(answer) : answer;
    },
  };
  return { resolver, asked, limits };
}

describe.each([false, true])('a cached resolver (asynchronous: %s)', (isAsync) => {
  it('is asked once for each subject within its time to live, from the question on', async () => {
    const clock = new ManualClock();
    const { resolver, asked, limits } = counting({ ann: 5 }, isAsync);
    const cached = cachedResolver(resolver, { ttl: '1m', clock });
    expect(await cached.resolve(charges('ann', 'bob'))).toEqual([{ limit: 5 }, undefined]);
    limits.ann = 6;
    clock.advance(59_999);
    // What is known is answered without waiting.
    expect(cached.resolve(charges('bob', 'ann'))).toEqual([undefined, { limit: 5 }]);
    expect(await cached.resolve(charges('ann', 'cat'))).toEqual([{ limit: 5 }, undefined]);
    clock.advance(1);
    expect(await cached.resolve(charges('ann'))).toEqual([{ limit: 6 }]);
    expect(asked).toEqual([['ann', 'bob'], ['cat'], ['ann']]);
  });

  it('concerns what the resolver does', () => {
    const { resolver } = counting({}, isAsync);
    const concerns = ['api'];
    const cached = cachedResolver({ ...resolver, concerns }, { ttl: 1_000 });
    expect(cached.concerns).toBe(concerns);
  });

  it('forgets what has not been asked for when there is too much', async () => {
    const { resolver, asked } = counting({}, isAsync);
    const cached = cachedResolver(resolver, { ttl: '1h', maxEntries: 10, clock: new ManualClock() });
    for (let i = 0; i < 1_000; i++) await cached.resolve(charges(`s${i}`));
    await cached.resolve(charges('s999'));
    expect(asked).toHaveLength(1_000);
    await cached.resolve(charges('s0'));
    expect(asked).toHaveLength(1_001);
  });
});

it('shares a question that is being asked, and remembers no failure', async () => {
  const questions: { resolve: (answer: { limit: number }[]) => void; reject: (error: Error) => void }[] = [];
  const cached = cachedResolver(
    { resolve: () => new Promise((resolve, reject) => questions.push({ resolve, reject })) },
    { ttl: 1_000, clock: new ManualClock() },
  );
  const both = [cached.resolve(charges('ann')), cached.resolve(charges('ann'))];
  expect(questions).toHaveLength(1);
  questions[0]!.reject(new Error('no database'));
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const again = cached.resolve(charges('ann'));
  questions[1]!.resolve([{ limit: 3 }]);
  expect(await again).toEqual([{ limit: 3 }]);
});

it('refuses an answer that can not be assigned', async () => {
  const cached = cachedResolver({ resolve: () => [{ limit: 1 }] }, { ttl: 1_000 });
  expect(() => cached.resolve(charges('ann', 'bob'))).toThrow(
    expect.objectContaining({ code: 'RL_INVALID_OPTION' }),
  );
});

it.each([
  [{ ttl: 'soon' }, 'RL_INVALID_DURATION'],
  [{ ttl: 0 }, 'RL_INVALID_DURATION'],
  [{ ttl: 1, maxEntries: 0 }, 'RL_INVALID_OPTION'],
])('refuses %j', (options, code) => {
  expect(() => cachedResolver({ resolve: () => undefined }, options)).toThrow(
    expect.objectContaining({ code }),
  );
});
