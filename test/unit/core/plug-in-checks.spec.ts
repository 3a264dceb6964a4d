import { fixedWindow, limiterBuilder, MemoryDriver, type Algorithm, type Clock } from 'nestjs-distlimit';
import { ALGORITHMS } from '../../../lib/algorithms/index.js';
import type { Diagnostic } from '../../../lib/core/diagnostics.js';
import { completePolicy } from '../../../lib/core/policy-completion.js';
import { engineParts } from '../../../lib/engine-parts.js';

const completeWith = (algorithm: unknown) =>
  completePolicy('p', { limit: 3, window: '1s', algorithm: algorithm as Algorithm }, 'policies.p', {
    algorithms: ALGORITHMS,
    report: () => {},
  });

describe('an algorithm of your own', () => {
  it('is taken where it has everything', () => {
    const own = { ...fixedWindow, name: 'own' };
    expect(completeWith(own)).toMatchObject({ algorithm: 'own', arithmetic: own });
  });

  it.each<[string, object]>([
    ['no name', { name: '' }],
    ['a shape that is none', { shape: 'square' }],
    ['no registers', { registers: undefined }],
    ['none in its registers', { registers: [] }],
    ['two registers of one name', { registers: ['used', 'used', 'start'] }],
    ['a register that is no text', { registers: ['used', 5] }],
    ['an option that it can not use', { uses: ['limit'] }],
    ['no uses', { uses: undefined }],
    ['no defaultBurst', { defaultBurst: undefined }],
    ['no capacity', { capacity: 3 }],
    ['no idleMs', { idleMs: undefined }],
    ['no step', { step: undefined }],
    ['no refund', { refund: undefined }],
  ])('is refused with %s', (_title, wrong) => {
    expect(() => completeWith({ ...fixedWindow, ...wrong })).toThrow(
      expect.objectContaining({ code: 'RL_INVALID_ALGORITHM', path: 'policies.p.algorithm' }),
    );
  });

  it.each<[string, object, string]>([
    ['a broken burst', { defaultBurst: () => 1.5 }, 'defaultBurst(3, 1000)'],
    ['a burst of 0', { defaultBurst: () => 0 }, 'defaultBurst(3, 1000)'],
    ['no capacity', { capacity: () => undefined }, 'capacity(quota)'],
    ['a negative capacity', { capacity: () => -1 }, 'capacity(quota)'],
    ['no life', { idleMs: () => 0 }, 'idleMs(quota)'],
    ['half a millisecond', { idleMs: () => 0.5 }, 'idleMs(quota)'],
    ['an endless life', { idleMs: () => Infinity }, 'idleMs(quota)'],
  ])('is refused where it answers with %s', (_title, wrong, member) => {
    expect(() => completeWith({ ...fixedWindow, ...wrong })).toThrow(
      expect.objectContaining({ code: 'RL_INVALID_ALGORITHM', path: `policies.p.algorithm.${member}` }),
    );
  });
});

describe('a driver of your own', () => {
  const driver = new MemoryDriver();
  afterAll(() => driver.close());

  const members = [
    'name',
    'decide',
    'peek',
    'refund',
    'giveBack',
    'reset',
    'block',
    'unblock',
    'status',
    'close',
  ];

  it.each(members)('is refused without %s', (missing) => {
    const incomplete = Object.create(driver, { [missing]: { value: undefined } }) as MemoryDriver;
    expect(() => limiterBuilder().driver(incomplete).build()).toThrow(
      expect.objectContaining({ code: 'RL_INVALID_OPTION', path: 'driver' }),
    );
  });

  it('is refused with half a synchronous side', () => {
    const half = Object.create(driver, { synchronous: { value: { tryTake: () => true } } }) as MemoryDriver;
    expect(() => limiterBuilder().driver(half).build()).toThrow('RL_INVALID_OPTION');
  });
});

describe('an option that a driver of your own has no use for', () => {
  it('is told of', async () => {
    const driver = new MemoryDriver();
    const told: Diagnostic[] = [];
    engineParts(
      { driver, memory: { maxKeys: 5 }, prefix: 'app' },
      (diagnostic) => told.push(diagnostic),
      () => {},
    );
    expect(told).toEqual([
      { code: 'RL_OPTION_HAS_NO_EFFECT', message: 'prefix has no effect with a driver of your own' },
      { code: 'RL_OPTION_HAS_NO_EFFECT', message: 'memory has no effect with a driver of your own' },
    ]);
    await driver.close();
  });
});

describe('a clock of your own', () => {
  it.each<[string, unknown]>([
    ['no time', { now: () => undefined }],
    ['NaN', { now: () => NaN }],
    ['text', { now: () => '5' }],
    ['a timer that is none', { now: () => 5, setTimer: 5 }],
    ['no now()', {}],
  ])('is refused with %s', (_title, clock) => {
    expect(() =>
      limiterBuilder()
        .clock(clock as Clock)
        .build(),
    ).toThrow(expect.objectContaining({ code: 'RL_INVALID_OPTION', path: 'clock' }));
  });
});
