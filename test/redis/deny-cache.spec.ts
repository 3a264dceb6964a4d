import { RedisDriver } from 'nestjs-distlimit';
import type { Charge } from '../../lib/core/driver.js';
import { anyRedis, until } from '../support/redis-servers.js';
import { chargeOf, heldClock } from '../unit/drivers/support.js';

let redis: Awaited<ReturnType<typeof anyRedis>>;
let clock: ReturnType<typeof heldClock>;
let here: RedisDriver;
let elsewhere: RedisDriver;
let prefixes = 0;

beforeAll(async () => {
  redis = await anyRedis();
});
beforeEach(async () => {
  clock = heldClock();
  const prefix = `deny-${process.pid}-${++prefixes}`;
  [here, elsewhere] = [0, 1].map(() => new RedisDriver({ redis: redis.url, prefix, clock })) as [
    RedisDriver,
    RedisDriver,
  ];
  await Promise.all([here.started, elsewhere.started]);
});
afterEach(() => Promise.all([here.close(), elsewhere.close()]));
afterAll(() => redis.stop());

const one = async (driver: RedisDriver, charge: Charge, cost = 1) =>
  (await driver.decide([{ ...charge, cost }]))[0]!;
const BUCKET = { limit: 10, window: 10_000, burst: 10, algorithm: 'token-bucket' } as const;

it('denies without Redis what Redis would deny, and tells the same', async () => {
  const charge = chargeOf('a', BUCKET);
  await one(here, charge, 8);
  const denied = await one(here, charge, 5);
  expect(denied).toMatchObject({ allowed: false, remaining: 2, retryAfterMs: 3_000, servedBy: 'redis' });
  expect(await one(here, charge, 5)).toEqual({ ...denied, servedBy: 'deny-cache' });
  clock.time += 999;
  const local = await one(here, charge, 5);
  expect(local).toEqual({ ...(await one(elsewhere, charge, 5)), servedBy: 'deny-cache' });
  expect(local).toMatchObject({ retryAfterMs: 2_001, resetAfterMs: 7_001 });
});

it('denies a larger cost too, with the wait of that cost, and asks Redis about a smaller one', async () => {
  const charge = chargeOf('a', BUCKET);
  await one(here, charge, 8);
  await one(here, charge, 5);
  expect(await one(here, charge, 6)).toMatchObject({
    allowed: false,
    retryAfterMs: 4_000,
    servedBy: 'deny-cache',
  });
  expect(await one(here, charge, 11)).toMatchObject({
    allowed: false,
    retryAfterMs: Infinity,
    servedBy: 'deny-cache',
  });
  expect(await one(here, charge, 2)).toMatchObject({ allowed: true, servedBy: 'redis' });
});

it('lets a denial go to the millisecond that Redis would', async () => {
  const charge = chargeOf('a', { ...BUCKET, limit: 100 });
  await one(here, charge, 10);
  expect(await one(here, charge)).toMatchObject({ retryAfterMs: 100 });
  clock.time += 99;
  expect(await one(here, charge)).toMatchObject({ allowed: false, retryAfterMs: 1, servedBy: 'deny-cache' });
  clock.time += 1;
  expect(await one(here, charge)).toMatchObject({ allowed: true, servedBy: 'redis' });
});

it('remembers no denial longer than a second', async () => {
  const charge = chargeOf('a', BUCKET);
  await one(here, charge, 10);
  await one(here, charge, 10);
  clock.time += 999;
  expect((await one(here, charge, 10)).servedBy).toBe('deny-cache');
  clock.time += 1;
  expect((await one(here, charge, 10)).servedBy).toBe('redis');
});

it('remembers a denial of a log for the same cost', async () => {
  const charge = chargeOf('a', { limit: 2, window: 10_000, algorithm: 'sliding-window-log' });
  await one(here, charge, 2);
  await one(here, charge);
  clock.time += 500;
  expect(await one(here, charge)).toMatchObject({
    retryAfterMs: 9_500,
    resetAfterMs: 9_500,
    servedBy: 'deny-cache',
  });
  expect((await one(here, charge, 2)).servedBy).toBe('redis');
});

it('remembers nothing of a log that a group charges twice', async () => {
  const charge = chargeOf('a', { limit: 2, window: 10_000, algorithm: 'sliding-window-log' });
  await one(here, charge);
  expect((await here.decide([charge, charge])).map(({ allowed }) => allowed)).toEqual([true, false]);
  expect(await one(here, charge)).toMatchObject({ allowed: true, remaining: 0, servedBy: 'redis' });
});

it('says when the quota of a blocked subject is back without a charge that was not taken', async () => {
  const charge = chargeOf('a', BUCKET);
  await one(here, charge, 8);
  await here.block(charge, 1_000);
  const denied = await one(here, charge);
  expect(denied).toMatchObject({ allowed: false, resetAfterMs: 8_000, servedBy: 'redis' });
  // The block is announced to everybody, and who made it forgets once more when he hears of it.
  let again = denied;
  await until(async () => {
    again = await one(here, charge);
    return again.servedBy !== 'redis';
  });
  expect(again).toEqual({ ...denied, servedBy: 'deny-cache' });
});

it('remembers a block', async () => {
  const charge = chargeOf('a', { limit: 1, window: 1_000, algorithm: 'fixed-window', block: '1m' });
  await one(here, charge);
  await one(here, charge);
  clock.time += 900;
  expect(await one(here, charge)).toMatchObject({
    remaining: 0,
    retryAfterMs: 59_100,
    servedBy: 'deny-cache',
  });
});

it('remembers nothing under a policy that counts by outcome, nor under another quota', async () => {
  const counted = chargeOf('a', { ...BUCKET, countIf: () => true });
  await one(here, counted, 10);
  await one(here, counted);
  expect((await one(here, counted)).servedBy).toBe('redis');
  const plain = chargeOf('b', BUCKET);
  await one(here, plain, 10);
  await one(here, plain);
  expect((await one(here, { ...plain, quota: { ...plain.quota, windowMs: 5_000 } })).servedBy).toBe('redis');
  expect((await one(here, chargeOf('b', { ...BUCKET, limit: 20, burst: 20 }))).allowed).toBe(true);
});

const CHANGES: [string, (driver: RedisDriver, charge: Charge) => Promise<void>, boolean][] = [
  ['reset', (driver, charge) => driver.reset(charge), true],
  ['a refund', (driver, charge) => driver.giveBack(charge, 1), true],
  ['block', (driver, charge) => driver.block(charge, 60_000), false],
  ['unblock', (driver, charge) => driver.unblock(charge), false],
];

describe.each(CHANGES)('%s', (_title, change, admits) => {
  it('is forgotten for at once here, and elsewhere by message', async () => {
    const charge = chargeOf('a', BUCKET);
    await one(here, charge, 10);
    for (const driver of [here, elsewhere]) {
      await one(driver, charge);
      expect((await one(driver, charge)).servedBy).toBe('deny-cache');
    }
    await change(here, charge);
    expect(await one(here, charge)).toMatchObject({ allowed: admits, servedBy: 'redis' });
    if (admits) await change(here, charge);
    await until(async () => (await one(elsewhere, charge)).servedBy === 'redis', 2_000);
  });

  it('is followed by no denial that is older', async () => {
    const charge = chargeOf('a', BUCKET);
    await one(here, charge, 10);
    const [denied] = await Promise.all([one(here, charge), change(here, charge)]);
    expect(denied).toMatchObject({ allowed: false, servedBy: 'redis' });
    expect((await one(here, charge)).servedBy).toBe('redis');
  });
});
