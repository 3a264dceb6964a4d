import { MemoryDriver } from '../../../lib/drivers/memory/memory-driver.js';
import { Sweep } from '../../../lib/drivers/memory/sweeper.js';
import { chargeOf, heldClock } from './support.js';

describe('sweeping', () => {
  it('removes what has expired at the interval, and lets go of empty shards', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock, sweepIntervalMs: 500 });
    const { policy } = chargeOf('', { algorithm: 'fixed-window' });
    for (let i = 0; i < 5_000; i++) driver.tryTake(policy, policy, `user:${i}`, 1);
    clock.advance(30_000);
    driver.tryTake(policy, policy, 'user:7', 1);
    clock.advance(30_000);
    expect(driver.status().keys).toBe(1);
    const shards = Array.from({ length: 64 }, (_, i) => driver.store.tables[0]!.shardAt(i));
    expect(shards.filter((shard) => shard !== undefined)).toHaveLength(1);
  });

  it('treats what has expired and is still there as absent', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock, sweepIntervalMs: 1_000_000 });
    const { policy } = chargeOf('', { limit: 1, window: 1_000, algorithm: 'sliding-window-log' });
    expect(driver.tryTake(policy, policy, 'a', 1)).toBe(true);
    expect(driver.tryTake(policy, policy, 'a', 1)).toBe(false);
    clock.time += 1_000;
    expect(driver.tryTake(policy, policy, 'a', 1)).toBe(true);
    expect(driver.status().keys).toBe(1);
  });

  it('inserts nothing for a denial', () => {
    const driver = new MemoryDriver({ clock: heldClock() });
    const { policy } = chargeOf('', { limit: 0 });
    expect(driver.tryTake(policy, policy, 'a', 1)).toBe(false);
    expect(driver.status().keys).toBe(0);
  });

  it('counts no key of a table that is replaced between two slices', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock });
    const before = chargeOf('', { algorithm: 'fixed-window' }).policy;
    const after = chargeOf('', { algorithm: 'gcra' }).policy;
    for (let i = 0; i < 2_000; i++) driver.tryTake(before, before, `user:${i}`, 1);
    clock.time += 60_000;
    const sweep = new Sweep(driver.store, clock.time);
    expect(sweep.slice(100)).toBe(false);
    driver.tryTake(after, after, 'one', 1);
    while (!sweep.slice(100));
    expect(driver.status().keys).toBe(1);
  });

  it('costs no more than its budget a slice', () => {
    const clock = heldClock();
    const driver = new MemoryDriver({ clock });
    const { policy } = chargeOf('');
    for (let i = 0; i < 100_000; i++) driver.tryTake(policy, policy, `user:${i}`, 1);
    clock.time += 3_600_000;
    const sweep = new Sweep(driver.store, clock.time);
    let slices = 1;
    let most = 0;
    for (let keys = driver.status().keys; !sweep.slice(); slices++) {
      most = Math.max(most, keys - driver.status().keys);
      keys = driver.status().keys;
    }
    expect(driver.status().keys).toBe(0);
    expect(most).toBeLessThanOrEqual(4_096);
    expect(slices).toBeGreaterThan(20);
  });
});
