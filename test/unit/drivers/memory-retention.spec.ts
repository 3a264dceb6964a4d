import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MemoryDriver } from '../../../lib/drivers/memory/memory-driver.js';
import { chargeOf } from './support.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

async function isCollected(ref: WeakRef<object>): Promise<boolean> {
  for (let i = 0; i < 10 && ref.deref() !== undefined; i++) {
    await nextTurn();
    collectGarbage();
  }
  return ref.deref() === undefined;
}

/** Timers and handles by kind, those that keep no process alive left out by Node itself. */
function activeTimers(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate').length;
}

describe('what a memory driver keeps', () => {
  it('keeps no process alive, and has no timer a key', async () => {
    const before = activeTimers();
    const driver = new MemoryDriver();
    const { policy } = chargeOf('', { block: '1m', limit: 1 });
    for (let i = 0; i < 1_000; i++) {
      driver.tryTake(policy, policy, `user:${i}`, 1);
      driver.tryTake(policy, policy, `user:${i}`, 1);
    }
    expect(driver.status().keys).toBe(2_000);
    expect(activeTimers()).toBe(before);
    await driver.close();
  });

  it('keeps nothing of the asynchronous context it was made or used in', async () => {
    const storage = new AsyncLocalStorage<object>();
    const { policy } = chargeOf('');
    let driver: MemoryDriver | undefined;
    const ref = (() => {
      const context = { large: new Array(1_000).fill(0) };
      storage.run(context, () => {
        driver = new MemoryDriver({ sweepIntervalMs: 3_600_000 });
        driver.tryTake(policy, policy, 'a', 1);
        driver.decideOne({ policy, quota: policy, subject: 'b', cost: 1 });
      });
      return new WeakRef(context);
    })();
    await nextTurn();
    expect(await isCollected(ref)).toBe(true);
    expect(driver!.status().keys).toBe(2);
    await driver!.close();
  });

  it('keeps no large text alive of which a subject was a slice', async () => {
    const driver = new MemoryDriver({ sweepIntervalMs: 3_600_000 });
    const { policy } = chargeOf('');
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 600; i++) {
      const subject = `the-subject-of-request-${i}${'x'.repeat(100_000)}`.slice(0, 26);
      for (let again = 0; again < 2; again++) driver.tryTake(policy, policy, subject, 1);
    }
    driver.sweep();
    await nextTurn();
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000);
    await driver.close();
  });

  it('is collected when it is forgotten without close()', async () => {
    const { policy } = chargeOf('');
    const ref = (() => {
      const driver = new MemoryDriver({ sweepIntervalMs: 3_600_000 });
      driver.tryTake(policy, policy, 'a', 1);
      return new WeakRef(driver);
    })();
    await nextTurn();
    expect(await isCollected(ref)).toBe(true);
  });

  it('keeps no text that a subject was cut from', () => {
    const driver = new MemoryDriver();
    const { policy } = chargeOf('');
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 40; i++) {
      const request = `${i}${'x'.repeat(1_000_000)}`;
      driver.tryTake(policy, policy, request.slice(0, 20), 1);
      driver.tryTake(policy, policy, request.slice(0, 150), 1);
    }
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
    void driver.close();
  });

  it('tells long subjects apart to the last code unit, lone surrogates too', () => {
    const driver = new MemoryDriver();
    const { policy } = chargeOf('', { limit: 1 });
    const long = 'é'.repeat(40);
    for (const subject of [
      '\ud800',
      '\ud801',
      '\udc00',
      '\ufffd',
      `${long}\ud800`,
      `${long}\ufffd`,
      `${long}\udc00`,
    ]) {
      expect(driver.tryTake(policy, policy, subject, 1)).toBe(true);
      expect(driver.tryTake(policy, policy, subject, 1)).toBe(false);
    }
    void driver.close();
  });
});
