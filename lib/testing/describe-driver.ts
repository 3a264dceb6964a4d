import assert from 'node:assert/strict';
import { ALGORITHMS } from '../algorithms/index.js';
import type { Algorithm } from '../core/algorithm.js';
import type { Clock } from '../core/clock.js';
import type { Charge, Decision, Driver, MaybePromise } from '../core/driver.js';
import { completePolicy } from '../core/policy-completion.js';
import type { PolicyOptions } from '../core/policy.js';
import { ManualClock } from './manual-clock.js';
import { testFramework, type TestFramework } from './test-framework.js';

/** How the conformance suite gets a driver to look at. */
export interface DriverSuiteOptions {
  /**
   * Makes a driver whose decisions follow `clock`, connected and empty, or as good as that: names and subjects are new
   * in every test. The suite closes it.
   */
  readonly open: (clock: Clock) => MaybePromise<Driver>;
  /** Which algorithms it is looked at with. Default: all that are built in. */
  readonly algorithms?: readonly Algorithm[];
  /** Default: `describe` and `it` of the global scope. */
  readonly framework?: TestFramework;
}

const WINDOW_MS = 10_000;
const DAY_MS = 86_400_000;

let names = 0;

/** A driver on trial, and shorthands for what it is asked. */
class Trial {
  readonly #run = `${process.pid}-${Date.now().toString(36)}-${++names}`;

  private constructor(
    readonly driver: Driver,
    readonly clock: ManualClock,
  ) {}

  static async open(open: DriverSuiteOptions['open']): Promise<Trial> {
    const clock = new ManualClock();
    const driver = await open(clock);
    await driver.started;
    return new Trial(driver, clock);
  }

  charge(
    algorithm: Algorithm,
    options: Partial<PolicyOptions> = {},
    subject = 'ann',
    name = 'policy',
  ): Charge {
    const limited = { limit: 5, window: WINDOW_MS, ...options };
    const burst = algorithm.uses.includes('burst') && { burst: options.burst ?? limited.limit };
    const policy = completePolicy(
      `${name} ${this.#run}`,
      { ...limited, ...(limited.limit > 0 && burst), algorithm },
      name,
      { algorithms: {}, report: () => {} },
    );
    return { policy, quota: policy, subject, cost: 1 };
  }

  async decide(...group: Charge[]): Promise<readonly Decision[]> {
    return this.driver.decide(group);
  }

  async one(charge: Charge, cost = charge.cost): Promise<Decision> {
    return (await this.driver.decide([{ ...charge, cost }]))[0]!;
  }

  async left(charge: Charge): Promise<number> {
    return (await this.driver.peek(charge)).remaining;
  }
}

/**
 * The tests that every driver has to pass: memory and Redis do. Call it in a test file; it declares a suite.
 *
 * @example
 * describeDriver('my driver', { open: (clock) => new MyDriver({ clock }) });
 */
export function describeDriver(name: string, options: DriverSuiteOptions): void {
  const { describe, it } = testFramework(options.framework);
  const algorithms = options.algorithms ?? Object.values(ALGORITHMS);

  const test = (title: string, run: (trial: Trial) => Promise<void>): void => {
    it(title, async () => {
      const trial = await Trial.open(options.open);
      try {
        await run(trial);
      } finally {
        await trial.driver.close();
      }
    });
  };

  describe(name, () => {
    for (const algorithm of algorithms) {
      describe(algorithm.name, () => describeCounters(algorithm, test));
    }
    describe('groups', () => describeGroups(algorithms[0]!, test));
    describe('blocks', () => describeBlocks(algorithms[0]!, test));
    test('decides nothing any more once it is closed', async (trial) => {
      const charge = trial.charge(algorithms[0]!);
      await trial.one(charge);
      await trial.driver.close();
      await assert.rejects(async () => trial.driver.decide([charge]), { code: 'RL_CLOSED' });
    });
  });
}

type DeclareTest = (title: string, run: (trial: Trial) => Promise<void>) => void;

function describeCounters(algorithm: Algorithm, test: DeclareTest): void {
  test('admits exactly the limit of a thousand calls at once', async (trial) => {
    const charge = trial.charge(algorithm);
    const decisions = await Promise.all(Array.from({ length: 1_000 }, () => trial.one(charge)));
    assert.equal(decisions.filter(({ allowed }) => allowed).length, 5);
    assert.deepEqual(
      decisions.slice(0, 6).map(({ remaining }) => remaining),
      [4, 3, 2, 1, 0, 0],
    );
  });

  test('keeps subjects and policies apart', async (trial) => {
    await trial.one(trial.charge(algorithm), 5);
    assert.equal((await trial.one(trial.charge(algorithm))).allowed, false);
    assert.equal((await trial.one(trial.charge(algorithm, {}, 'bob'))).allowed, true);
    assert.equal((await trial.one(trial.charge(algorithm, {}, 'ann', 'other'))).allowed, true);
  });

  for (const subject of [
    '}:x{',
    '{a}',
    'a:b',
    '%7b',
    '\u0000\r\n',
    'ünïcode',
    '\ud800',
    '\ud801',
    '__proto__',
    'x'.repeat(200),
  ]) {
    test(`has a counter of its own for the subject ${JSON.stringify(subject).slice(0, 20)}`, async (trial) => {
      const charge = trial.charge(algorithm, { limit: 1 }, subject);
      assert.equal((await trial.one(charge)).allowed, true);
      assert.equal((await trial.one(charge)).allowed, false);
      assert.equal((await trial.one(trial.charge(algorithm, { limit: 1 }, `${subject}.`))).allowed, true);
    });
  }

  test('takes nothing for a cost that is more than is left, or more than can ever fit', async (trial) => {
    const charge = trial.charge(algorithm);
    const never = await trial.one(charge, 6);
    assert.deepEqual([never.allowed, never.remaining, never.retryAfterMs], [false, 5, Infinity]);
    await trial.one(charge, 3);
    const denied = await trial.one(charge, 3);
    assert.deepEqual([denied.allowed, denied.remaining, denied.receipt], [false, 2, undefined]);
    assert.equal(await trial.left(charge), 2);
  });

  test('admits nothing with a limit of 0', async (trial) => {
    const { allowed, retryAfterMs } = await trial.one(trial.charge(algorithm, { limit: 0 }));
    assert.deepEqual([allowed, retryAfterMs], [false, Infinity]);
  });

  test('lifts a denial exactly at retryAfterMs, also for another cost than the last', async (trial) => {
    const { clock } = trial;
    const charge = trial.charge(algorithm);
    await trial.one(charge, 5);
    clock.advance(1_200);
    const due: number[] = [];
    for (const cost of [1, 2, 3]) {
      const { allowed, retryAfterMs } = await trial.one(charge, cost);
      assert.equal(allowed, false);
      due.push(clock.now() + retryAfterMs);
    }
    for (const [i, time] of due.entries()) {
      const cost = i + 1;
      if (time > clock.now()) {
        clock.set(time - 1);
        const early = await trial.one(charge, cost);
        assert.deepEqual([early.allowed, early.retryAfterMs], [false, 1]);
        clock.set(time);
      }
      const { allowed, receipt } = await trial.one(charge, cost);
      assert.equal(allowed, true);
      await trial.driver.refund(charge, receipt!);
    }
  });

  test('tells the whole quota back at resetAfterMs', async (trial) => {
    const charge = trial.charge(algorithm);
    const { resetAfterMs } = await trial.one(charge, 3);
    trial.clock.advance(resetAfterMs);
    const { remaining, resetAfterMs: then } = await trial.driver.peek(charge);
    assert.deepEqual([remaining, then], [5, 0]);
  });

  test('looks without charging', async (trial) => {
    const charge = trial.charge(algorithm);
    await trial.one(charge, 4);
    for (let i = 0; i < 3; i++) {
      const { allowed, remaining, receipt } = await trial.driver.peek(charge);
      assert.deepEqual([allowed, remaining, receipt], [true, 1, undefined]);
    }
    await trial.one(charge);
    const { allowed, remaining, retryAfterMs } = await trial.driver.peek(charge);
    assert.deepEqual([allowed, remaining, retryAfterMs > 0], [false, 0, true]);
  });

  test('gives back what a receipt took, and what is given back without one', async (trial) => {
    const charge = trial.charge(algorithm);
    const { receipt } = await trial.one(charge, 3);
    await trial.driver.refund(charge, receipt!);
    assert.equal(await trial.left(charge), 5);
    await trial.one(charge, 3);
    await trial.driver.giveBack(charge, 1);
    assert.equal(await trial.left(charge), 3);
    await trial.driver.giveBack(charge, 9);
    assert.equal(await trial.left(charge), 5);
  });

  test('admits again at once after a refund, a give-back and a reset of what was denied', async (trial) => {
    const charge = trial.charge(algorithm, { limit: 1 });
    const { receipt } = await trial.one(charge);
    assert.equal((await trial.one(charge)).allowed, false);
    await trial.driver.refund(charge, receipt!);
    assert.equal((await trial.one(charge)).allowed, true);
    assert.equal((await trial.one(charge)).allowed, false);
    await trial.driver.giveBack(charge, 1);
    assert.equal((await trial.one(charge)).allowed, true);
    assert.equal((await trial.one(charge)).allowed, false);
    await trial.driver.reset(charge);
    assert.equal((await trial.one(charge)).allowed, true);
  });

  test('gives back nothing that a reset has forgotten', async (trial) => {
    const charge = trial.charge(algorithm);
    const before = await trial.one(charge, 5);
    await trial.driver.reset(charge);
    const after = await trial.one(charge, 5);
    await trial.driver.refund(charge, before.receipt!);
    assert.equal(await trial.left(charge), 0);
    await trial.driver.refund(charge, after.receipt!);
    assert.equal(await trial.left(charge), 5);
  });

  test('keeps what was used when limit and window change', async (trial) => {
    await trial.one(trial.charge(algorithm), 4);
    assert.equal(await trial.left(trial.charge(algorithm, { limit: 10 })), 6);
    assert.equal(await trial.left(trial.charge(algorithm, { limit: 2 })), 0);
    assert.equal((await trial.one(trial.charge(algorithm, { limit: 10 }))).remaining, 5);
    assert.equal(
      (await trial.one(trial.charge(algorithm, { limit: 10, window: 2 * WINDOW_MS }))).allowed,
      true,
    );
  });

  test('is locked by no clock that jumped ahead, alone and in a group', async (trial) => {
    const { clock } = trial;
    const charges = [trial.charge(algorithm, { limit: 1 }), trial.charge(algorithm, { limit: 1 }, 'bob')];
    const other = trial.charge(algorithm, { limit: 100 }, 'ann', 'other');
    const start = clock.now();
    clock.set(start + DAY_MS);
    await trial.one(charges[0]!);
    await trial.decide(charges[1]!, other);
    clock.set(start);
    assert.equal((await trial.one(charges[0]!)).allowed, false);
    assert.equal((await trial.decide(charges[1]!, other))[0]!.allowed, false);
    clock.set(start + 2 * WINDOW_MS);
    assert.equal((await trial.one(charges[0]!)).allowed, true);
    assert.equal((await trial.decide(charges[1]!, other))[0]!.allowed, true);
  });

  test('mints nothing while the clock runs backwards', async (trial) => {
    const { clock } = trial;
    const charge = trial.charge(algorithm, { limit: 100, window: 1_000 });
    const start = clock.now();
    let passed = 0;
    for (let i = 0; i < 300; i++) {
      clock.set(start + i + (i % 2) * 500);
      if ((await trial.one(charge)).allowed) passed++;
    }
    assert.ok(passed <= 200, `${passed} passed in 0.8 s, of 100 a second`);
  });
}

function describeGroups(algorithm: Algorithm, test: DeclareTest): void {
  test('takes all, or nothing', async (trial) => {
    const [user, all] = [
      trial.charge(algorithm, { limit: 1 }, 'ann', 'user'),
      trial.charge(algorithm, { limit: 10 }, 'all', 'all'),
    ];
    for (let i = 0; i < 20; i++) {
      const decisions = await trial.decide(user, all);
      assert.deepEqual(
        decisions.map(({ allowed }) => allowed),
        [i === 0, true],
      );
      assert.equal(decisions[1]!.remaining, 9);
      if (i > 0)
        assert.deepEqual(
          decisions.map(({ receipt }) => receipt),
          [undefined, undefined],
        );
    }
    assert.equal(await trial.left(all), 9);
  });

  test('answers in order, and counts one counter as often as it comes', async (trial) => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => trial.charge(algorithm, { limit: 10 }, 'ann', name));
    const decisions = await trial.decide(a!, { ...b!, cost: 4 }, a!, { ...c!, cost: 7 });
    assert.deepEqual(
      decisions.map(({ remaining }) => remaining),
      [9, 6, 8, 3],
    );
    assert.deepEqual([await trial.left(a!), await trial.left(b!), await trial.left(c!)], [8, 6, 3]);
  });

  test('says when all that it takes of one counter would fit', async (trial) => {
    const charge = trial.charge(algorithm);
    const of = (cost: number) => trial.decide({ ...charge, cost }, { ...charge, cost });
    assert.equal((await of(3))[1]!.retryAfterMs, Infinity);
    await trial.one(charge, 2);
    const { retryAfterMs } = (await of(2))[1]!;
    trial.clock.advance(retryAfterMs - 1);
    assert.deepEqual(
      (await of(2)).map(({ allowed }) => allowed),
      [true, false],
    );
    trial.clock.advance(1);
    assert.deepEqual(
      (await of(2)).map(({ allowed }) => allowed),
      [true, true],
    );
  });

  test('is not stopped by a policy in shadow mode, which is charged where it would have admitted', async (trial) => {
    const shadow = trial.charge(algorithm, { limit: 1, mode: 'shadow' }, 'ann', 'shadow');
    const enforced = trial.charge(algorithm, { limit: 3 }, 'ann', 'enforced');
    const decisions = [];
    for (let i = 0; i < 4; i++)
      decisions.push((await trial.decide(shadow, enforced)).map(({ allowed }) => allowed));
    assert.deepEqual(decisions, [
      [true, true],
      [false, true],
      [false, true],
      [false, false],
    ]);
    assert.equal((await trial.one(shadow)).allowed, false);
  });

  test('decides a hundred charges together', async (trial) => {
    const group = Array.from({ length: 100 }, (_, i) =>
      trial.charge(algorithm, { limit: 2 }, `subject ${i}`),
    );
    await trial.one(group[50]!, 2);
    assert.equal((await trial.decide(...group)).filter(({ allowed }) => allowed).length, 99);
    await trial.driver.reset(group[50]!);
    assert.ok((await trial.decide(...group)).every(({ allowed, remaining }) => allowed && remaining === 1));
  });
}

function describeBlocks(algorithm: Algorithm, test: DeclareTest): void {
  test('deny whatever is left, take nothing, and end by themselves', async (trial) => {
    const charge = trial.charge(algorithm);
    await trial.one(charge, 2);
    await trial.driver.block(charge, 60_000);
    const { allowed, remaining, retryAfterMs, receipt } = await trial.one(charge);
    assert.deepEqual([allowed, remaining, retryAfterMs, receipt], [false, 0, 60_000, undefined]);
    assert.equal((await trial.driver.peek(charge)).retryAfterMs, 60_000);
    await trial.driver.unblock(charge);
    assert.equal(await trial.left(charge), 3);
    await trial.driver.block(charge, 60_000);
    trial.clock.advance(59_999);
    assert.equal((await trial.one(charge)).allowed, false);
    trial.clock.advance(1);
    assert.equal((await trial.one(charge)).allowed, true);
  });

  test('are lifted by a reset', async (trial) => {
    const charge = trial.charge(algorithm);
    await trial.driver.block(charge, 60_000);
    assert.equal((await trial.one(charge)).allowed, false);
    await trial.driver.reset(charge);
    assert.equal((await trial.one(charge)).allowed, true);
  });

  test('start with a denial of the policy, and are extended by nothing', async (trial) => {
    const charge = trial.charge(algorithm, { limit: 1, block: 60_000 });
    await trial.one(charge);
    assert.equal((await trial.driver.peek(charge)).retryAfterMs <= WINDOW_MS * 2, true);
    assert.equal((await trial.one(charge)).retryAfterMs, 60_000);
    trial.clock.advance(59_999);
    assert.equal((await trial.one(charge)).retryAfterMs, 1);
    assert.equal((await trial.driver.peek(charge)).retryAfterMs, 1);
    trial.clock.advance(1);
    assert.equal((await trial.one(charge)).allowed, true);
  });

  test('start for the one that denied alone, and for none in shadow mode', async (trial) => {
    const full = trial.charge(algorithm, { limit: 1, block: 60_000 }, 'ann', 'full');
    const free = trial.charge(algorithm, { limit: 100, block: 60_000 }, 'ann', 'free');
    const shadow = trial.charge(algorithm, { limit: 1, block: 60_000, mode: 'shadow' }, 'ann', 'shadow');
    await trial.decide(full, free, shadow);
    await trial.decide(full, free, shadow);
    assert.equal((await trial.one(full)).retryAfterMs, 60_000);
    assert.equal((await trial.one(free)).allowed, true);
    assert.ok((await trial.one(shadow)).retryAfterMs <= WINDOW_MS * 2);
  });

  test('last no longer than they were made for, though the clock was far ahead', async (trial) => {
    const charge = trial.charge(algorithm);
    const start = trial.clock.now();
    trial.clock.set(start + 365 * DAY_MS);
    await trial.driver.block(charge, 60_000);
    trial.clock.set(start);
    assert.equal((await trial.one(charge)).retryAfterMs, 60_000);
    trial.clock.advance(60_000);
    assert.equal((await trial.one(charge)).allowed, true);
  });

  test('say when the quota is back without a charge that was not taken', async (trial) => {
    const charge = trial.charge(algorithm, { window: 60_000 });
    await trial.driver.block(charge, 5_000);
    const { remaining, retryAfterMs, resetAfterMs } = await trial.driver.peek(charge);
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 5_000, 5_000]);
    assert.equal((await trial.one(charge, 5)).resetAfterMs, 5_000);
    assert.equal((await trial.decide(charge, trial.charge(algorithm, {}, 'bob')))[0]!.resetAfterMs, 5_000);
  });
}
