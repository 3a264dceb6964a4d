import {
  MemoryDriver,
  RateLimitConfigError,
  RateLimiterService,
  type Charge,
  type PolicyResolver,
  type Quota,
} from 'nestjs-distlimit';
import { engineOf } from '../../support/engine.js';
import { wrapped } from '../../support/wrapped-driver.js';

let memory: MemoryDriver;
let quotas: Quota[];

beforeEach(() => {
  memory = new MemoryDriver();
  quotas = [];
});

afterEach(() => memory.close());

function start(resolve: (...args: never[]) => unknown) {
  const driver = wrapped(memory, {
    decide: (group: readonly Charge[]) => {
      quotas.push(...group.map(({ quota }) => quota));
      return memory.decide(group);
    },
  });
  const engine = engineOf(
    { driver },
    {
      api: { limit: 10, window: '1m' },
      bucket: { limit: 10, window: '1m', algorithm: 'token-bucket' },
    },
  );
  engine.useResolver({ resolve } as PolicyResolver);
  return { engine, service: new RateLimiterService(engine) };
}

it.each([[null], [{ name: 'other' }], ['limit: 5'], [{ limits: 5 }]])(
  'updatePolicy() refuses %j',
  async (patch) => {
    const service = new RateLimiterService(engineOf({}, { api: { limit: 10, window: '1m' } }));
    await expect(service.updatePolicy('api', patch as never)).rejects.toBeInstanceOf(RateLimitConfigError);
    expect(service.policies()).toMatchObject([{ name: 'api', limit: 10 }]);
  },
);

it.each([[Promise.resolve({ limit: 20 })], [new Map([['limit', 20]])], [[20]]])(
  'refuses what only looks like numbers: %p',
  async (override) => {
    const { service } = start(() => [override]);
    await expect(service.consume('api')).rejects.toMatchObject({ code: 'RL_INVALID_ANSWER' });
    expect(quotas).toEqual([]);
  },
);

it('a resolver that can resolve nothing is refused', () => {
  const engine = engineOf({}, { api: { limit: 10, window: '1m' } });
  expect(() => engine.useResolver({} as PolicyResolver)).toThrow(
    expect.objectContaining({ code: 'RL_INVALID_OPTION', path: 'resolver.resolve' }),
  );
});

describe('a policy resolver', () => {
  it('tells two subjects of one policy apart', async () => {
    const { service } = start(({ charges }: { charges: { subject: string }[] }) =>
      charges.map(({ subject }) => (subject === 'gold' ? { limit: 1_000 } : undefined)),
    );
    const charges = ['tin', 'gold'].map((subject) => ({ policy: 'api', subject }));
    expect((await service.consumeAll(charges)).map(({ limit }) => limit)).toEqual([10, 1_000]);
  });

  it.each([[[{ limit: 20 }, { limit: '20', window: '60s' }, {}]], [undefined]])(
    'keeps one quota object for each set of numbers: %j',
    async (overrides) => {
      let next = 0;
      const { service } = start(() => overrides && [overrides[next++ % overrides.length]]);
      for (let i = 0; i < 6; i++) await service.consume('api', 'a');
      expect(new Set(quotas).size).toBe(overrides?.length ?? 1);
    },
  );

  it('counts by the numbers of now after a change of the policy', async () => {
    const { service } = start(() => [{ limit: 20 }]);
    expect((await service.consume('api', 'a')).remaining).toBe(19);
    await service.updatePolicy('api', { window: '2m' });
    await service.consume('api', 'a');
    expect(quotas.at(-1)).toMatchObject({ limit: 20, windowMs: 120_000 });
  });

  it('has a burst that the policy does not name follow the limit', async () => {
    const { service } = start(() => [{ limit: 30 }]);
    await service.consume('bucket', 'a');
    expect(quotas[0]).toEqual({ limit: 30, windowMs: 60_000, burst: 30, maxDelayMs: Infinity });
  });

  it('leaves decisions synchronous where it is', () => {
    const { engine } = start(() => [{ limit: 20 }]);
    expect(engine.charge(engine.slot('api'), 'a')).toMatchObject({ limit: 20, remaining: 19 });
  });

  it.each<[string, unknown, string]>([
    ['too short an array', [], 'RL_INVALID_OPTION'],
    ['too long an array', [undefined, undefined], 'RL_INVALID_OPTION'],
    ['a record by policy', { api: { limit: 3 } }, 'RL_INVALID_OPTION'],
    ['null', null, 'RL_INVALID_OPTION'],
    ['an unknown number', [{ limit: 3, rate: 5 }], 'RL_UNKNOWN_OPTION'],
    ['a limit that is none', [{ limit: -1 }], 'RL_INVALID_LIMIT'],
    ['a null in the array', [null], 'RL_INVALID_OPTION'],
  ])('fails the call with %s, and nothing is consumed', async (_title, answer, code) => {
    const { service } = start(() => answer);
    await expect(service.consume('api', 'a')).rejects.toMatchObject({
      code,
      path: expect.stringContaining('resolver') as string,
    });
    await expect(service.peek('api', 'a')).rejects.toMatchObject({ code });
    expect(memory.status().keys).toBe(0);
  });

  it('is asked about what it concerns only, and not at all where there is nothing of it', async () => {
    const asked: unknown[] = [];
    const resolve = ({ charges }: { charges: readonly unknown[] }) => {
      asked.push(charges);
      return [{ limit: 30 }];
    };
    const { engine, service } = start(resolve);
    engine.useResolver({ concerns: ['bucket'], resolve });
    const charges = ['api', 'bucket', 'api'].map((policy, i) => ({ policy, subject: `s${i}` }));
    expect((await service.consumeAll(charges)).map(({ limit }) => limit)).toEqual([10, 30, 10]);
    expect((await service.consume('api', 'a')).limit).toBe(10);
    expect(asked).toEqual([[{ policy: 'bucket', subject: 's1' }]]);
  });

  it.each([
    [['apy'], 'RL_UNKNOWN_POLICY'],
    ['api', 'RL_INVALID_OPTION'],
    [[1], 'RL_INVALID_OPTION'],
  ])('concerns policies that there are, and not %j', (concerns, code) => {
    const { engine } = start(() => undefined);
    expect(() => engine.useResolver({ concerns, resolve: () => undefined } as PolicyResolver)).toThrow(
      expect.objectContaining({ code, path: 'resolver.concerns' }) as Error,
    );
  });

  it('decides nothing when it answers after the limiter was closed', async () => {
    let answer: (value: undefined) => void = () => {};
    const promise = new Promise<undefined>((resolve) => (answer = resolve));
    const { service } = start(() => promise);
    const waiting = service.consume('api', 'a');
    await service.close();
    answer(undefined);
    await expect(waiting).rejects.toMatchObject({ code: 'RL_CLOSED' });
    expect(quotas).toEqual([]);
  });
});
