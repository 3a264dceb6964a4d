import { MemoryDriver } from '../../../lib/drivers/memory/memory-driver.js';
import { chargeOf, heldClock } from './support.js';

const ALGORITHMS = [
  'fixed-window',
  'sliding-window-counter',
  'sliding-window-log',
  'token-bucket',
  'leaky-bucket',
  'gcra',
] as const;
const DAY_MS = 86_400_000;

function driverOn(options: ConstructorParameters<typeof MemoryDriver>[0] = {}) {
  const clock = heldClock();
  return { clock, driver: new MemoryDriver({ clock, ...options }) };
}

describe.each(ALGORITHMS)('refunds with %s', (algorithm) => {
  const charge = chargeOf('a', { algorithm, limit: 5, burst: 5, window: '1m' });

  it('gives back nothing that a reset has forgotten, and what came after it', () => {
    const { driver } = driverOn();
    const [before] = driver.decide([{ ...charge, cost: 5 }]);
    driver.reset(charge);
    const [after] = driver.decide([{ ...charge, cost: 5 }]);
    driver.refund(charge, before!.receipt!);
    expect(driver.peek(charge).remaining).toBe(0);
    driver.refund(charge, after!.receipt!);
    expect(driver.peek(charge).remaining).toBe(5);
  });

  it('gives back the very first charge of a policy, though it was one of a group', () => {
    const { driver } = driverOn();
    const [first] = driver.decide([charge, chargeOf('a', { algorithm }, 'other')]);
    driver.refund(charge, first!.receipt!);
    expect(driver.peek(charge).remaining).toBe(5);
  });

  it('gives back nothing that was charged before the algorithm was another one for a while', () => {
    const { driver } = driverOn();
    const other = chargeOf('a', {
      algorithm: algorithm === 'gcra' ? 'fixed-window' : 'gcra',
      limit: 5,
      window: '1m',
    });
    const [before] = driver.decide([{ ...charge, cost: 5 }]);
    driver.decide([other]);
    driver.decide([{ ...charge, cost: 5 }]);
    driver.refund(charge, before!.receipt!);
    expect(driver.peek(charge).remaining).toBe(0);
  });
});

describe('groups', () => {
  it('keeps the counters of a group apart, whichever of them come twice', () => {
    const { driver } = driverOn();
    const [a, b, c] = ['a', 'b', 'c'].map((name) =>
      chargeOf('s', { algorithm: 'fixed-window', limit: 10 }, name),
    );
    driver.decide([a!, { ...b!, cost: 4 }, a!, { ...c!, cost: 7 }]);
    expect([a, b, c].map((counter) => driver.peek(counter!).remaining)).toEqual([8, 6, 3]);
  });

  it('brings nothing back that has expired, though the window is longer now', () => {
    const { driver, clock } = driverOn();
    const algorithm = 'sliding-window-log';
    driver.decide([{ ...chargeOf('a', { algorithm, limit: 5, window: 10 }), cost: 5 }]);
    clock.time += 50;
    const longer = chargeOf('a', { algorithm, limit: 5, window: 60_000 });
    driver.block(longer, 10);
    driver.decide([{ ...longer, cost: 7 }, chargeOf('b', {}, 'other')]);
    driver.unblock(longer);
    expect(driver.decide([longer])[0]).toMatchObject({ allowed: true, remaining: 4 });
  });

  it('says when all that a group takes of one counter would fit', () => {
    const { driver, clock } = driverOn();
    const charge = chargeOf('a', { algorithm: 'sliding-window-counter', limit: 5, window: 10_000 });
    expect(driver.decide([3, 3].map((cost) => ({ ...charge, cost })))[1]!.retryAfterMs).toBe(Infinity);
    driver.decide([{ ...charge, cost: 2 }]);
    const pair = [2, 2].map((cost) => ({ ...charge, cost }));
    const { retryAfterMs } = driver.decide(pair)[1]!;
    clock.time += retryAfterMs - 1;
    expect(driver.decide(pair).map(({ allowed }) => allowed)).toEqual([true, false]);
    clock.time += 1;
    expect(driver.decide(pair).map(({ allowed }) => allowed)).toEqual([true, true]);
  });

  it('makes room for a whole group before it takes any of it', () => {
    const evicted: string[] = [];
    const { driver } = driverOn({ maxKeys: 2, onEviction: ({ subject }) => evicted.push(subject) });
    driver.decide([chargeOf('old', { limit: 1 })]);
    const pair = ['a', 'b'].map((name) => chargeOf('new', { limit: 1 }, name));
    expect(driver.decide(pair).map(({ allowed }) => allowed)).toEqual([true, true]);
    expect(driver.decide(pair).map(({ allowed }) => allowed)).toEqual([false, false]);
    expect(evicted).toEqual(['old']);
  });

  it('evicts none of its own members, even where the store is smaller than the group', () => {
    const { driver } = driverOn({ maxKeys: 1 });
    const pair = ['a', 'b'].map((name) => chargeOf('new', { limit: 1 }, name));
    driver.decide(pair);
    expect(driver.decide(pair).map(({ allowed }) => allowed)).toEqual([false, false]);
  });
});

describe('blocks', () => {
  it('last no longer than they were made for, though the clock that made them was a year ahead', () => {
    const { driver, clock } = driverOn();
    const charge = chargeOf('a', { limit: 5 });
    clock.time += 365 * DAY_MS;
    driver.block(charge, 60_000);
    clock.time -= 365 * DAY_MS;
    expect(driver.decide([charge])[0]).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    clock.time += 59_999;
    expect(driver.decide([charge])[0]!.allowed).toBe(false);
    clock.time += 1;
    expect(driver.decide([charge])[0]!.allowed).toBe(true);
  });

  it('say when the quota is back without a charge that was not taken', () => {
    const { driver } = driverOn();
    const charge = chargeOf('a', { limit: 5, window: 60_000 });
    driver.block(charge, 5_000);
    expect(driver.peek(charge)).toMatchObject({ remaining: 0, retryAfterMs: 5_000, resetAfterMs: 5_000 });
    expect(driver.decide([{ ...charge, cost: 5 }])[0]!.resetAfterMs).toBe(5_000);
    expect(driver.decide([charge, chargeOf('b')])[0]!.resetAfterMs).toBe(5_000);
    const shadow = chargeOf('a', { limit: 5, window: 60_000, mode: 'shadow' });
    expect(driver.decide([shadow, chargeOf('b')])[0]!.resetAfterMs).toBe(5_000);
  });
});

describe('lowered limits', () => {
  it.each(['peek', 'decide'] as const)(
    'are kept until what was used has drained, once asked by %s',
    (verb) => {
      const { driver, clock } = driverOn();
      driver.decide([{ ...chargeOf('a', { limit: 100, window: 1_000 }), cost: 100 }]);
      const lowered = chargeOf('a', { limit: 1, window: 1_000 });
      clock.time += 500;
      if (verb === 'peek') driver.peek(lowered);
      else driver.decide([lowered]);
      clock.time += 600;
      expect(driver.decide([lowered])[0]!.allowed).toBe(false);
    },
  );
});

describe('a clock that tells no time', () => {
  it.each([NaN, Infinity, undefined])('refuses %s, and counts nothing', (time) => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock });
    const charge = chargeOf('a', { limit: 1, algorithm: 'fixed-window' });
    const right = clock.time;
    clock.time = time as number;
    expect(() => driver.decide([charge])).toThrow(/^RL_INVALID_CLOCK/);
    expect(() => driver.tryTake(charge.policy, charge.quota, 'a', 1)).toThrow(/^RL_INVALID_CLOCK/);
    clock.time = right;
    expect(driver.decide([charge, charge]).map(({ allowed }) => allowed)).toEqual([true, false]);
    expect(driver.decide([charge])[0]!.allowed).toBe(true);
  });
});

describe('a driver that was closed', () => {
  it('decides nothing any more', async () => {
    const { driver } = driverOn();
    const charge = chargeOf('a');
    driver.decide([charge]);
    await driver.close();
    expect(() => driver.decide([charge])).toThrow(/^RL_CLOSED/);
    expect(() => driver.tryTake(charge.policy, charge.quota, 'a', 1)).toThrow(/^RL_CLOSED/);
    expect(() => driver.block(charge, 1_000)).toThrow(/^RL_CLOSED/);
  });
});
