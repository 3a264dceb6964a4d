import fc from 'fast-check';
import { MemoryDriver } from '../../../lib/drivers/memory/memory-driver.js';
import { chargeOf, heldClock } from './support.js';

describe('MemoryDriver with maxKeys', () => {
  it('gives up exactly what is nearest to expiry in a store of up to 128', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 128 }),
        fc.array(fc.tuple(fc.nat(200), fc.integer({ min: 1, max: 10_000 })), {
          minLength: 1,
          maxLength: 300,
        }),
        (maxKeys, calls) => {
          const clock = heldClock();
          const evicted: string[] = [];
          const driver = new MemoryDriver({
            clock,
            maxKeys,
            onEviction: ({ subject }) => evicted.push(subject),
          });
          const model = new Map<string, number>();
          const expected: string[] = [];
          for (const [who, window] of calls) {
            clock.time += 1;
            const subject = `s${who}`;
            // A window of its own for each call, so that expiries lie anywhere; they are made distinct.
            const windowMs = window * 1_000 + expected.length + model.size;
            if (!model.has(subject) && model.size === maxKeys) {
              const [nearest, expiry] = [...model].reduce((a, b) => (b[1] < a[1] ? b : a));
              model.delete(nearest);
              if (expiry > clock.time) expected.push(nearest);
            }
            model.set(subject, clock.time + windowMs);
            const charge = chargeOf(subject, { algorithm: 'fixed-window' });
            driver.decide([{ ...charge, quota: { ...charge.quota, windowMs } }]);
            const ties = new Set(model.values()).size !== model.size;
            if (ties) return;
            expect(driver.status().keys).toBe(model.size);
          }
          expect(evicted).toEqual(expected);
          expect(driver.status().evictions).toBe(expected.length);
          void driver.close();
        },
      ),
    );
  });

  it('stays bounded while a million distinct keys come, and counts what it gave up', () => {
    const driver = new MemoryDriver({ maxKeys: 100_000 });
    const { policy } = chargeOf('');
    for (let i = 0; i < 1_000_000; i++) {
      driver.tryTake(policy, policy, `user:${i}`, 1);
      if (i % 50_000 === 0 && driver.status().keys > 100_000) throw new Error(`${driver.status().keys} keys`);
    }
    expect(driver.status()).toMatchObject({ keys: 100_000, evictions: 900_000 });
    expect([...driver.store.tables].reduce((sum, table) => sum + table.count, 0)).toBe(100_000);
    void driver.close();
  });

  it('counts blocks too', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock, maxKeys: 3 });
    const { policy } = chargeOf('', { limit: 1, block: '1h' });
    for (const subject of ['a', 'b', 'c', 'd']) {
      clock.time += 1_000;
      driver.tryTake(policy, policy, subject, 1);
      driver.tryTake(policy, policy, subject, 1);
      expect(driver.status().keys).toBeLessThanOrEqual(3);
    }
    // Blocks last longer than counters: the last three are what is left, and the first made room.
    expect(['b', 'c', 'd', 'a'].map((subject) => driver.tryTake(policy, policy, subject, 1))).toEqual([
      ...[false, false, false, true],
    ]);
  });

  it('lets whoever is told of an eviction call back, and decides as if they had not', () => {
    const told: string[] = [];
    const { policy: strict } = chargeOf('', { limit: 1 });
    const { policy: closed } = chargeOf('', { limit: 0 }, 'closed');
    const driver: MemoryDriver = new MemoryDriver({
      clock: heldClock(),
      maxKeys: 2,
      onEviction: ({ subject }) => {
        told.push(subject);
        if (told.length <= 3) driver.tryTake(strict, strict, subject, 1);
        driver.tryTake(closed, closed, subject, 1);
      },
    });
    expect(driver.tryTake(strict, strict, 'a', 1)).toBe(true);
    expect(driver.tryTake(strict, strict, 'b', 1)).toBe(true);
    expect(driver.tryTake(strict, strict, 'c', 1)).toBe(true);
    expect(told.length).toBeGreaterThan(1);
    expect(driver.status().keys).toBe(2);
    expect([...driver.store.tables].reduce((sum, table) => sum + table.count, 0)).toBe(2);
  });

  it('does not count a table twice that was replaced while it was swept', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock });
    const before = chargeOf('', { algorithm: 'fixed-window' }).policy;
    const after = chargeOf('', { algorithm: 'gcra' }).policy;
    for (let i = 0; i < 50; i++) driver.tryTake(before, before, `user:${i}`, 1);
    driver.tryTake(after, after, 'one', 1);
    expect(driver.status().keys).toBe(1);
    clock.advance(70_000);
    driver.sweep();
    expect(driver.status().keys).toBe(0);
  });
});
