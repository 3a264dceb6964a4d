import { createHmac } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  CommonLimit,
  MemoryDriver,
  RateLimiterService,
  RateLimitModule,
  type Charge,
  type Counter,
} from 'nestjs-distlimit';
import { ManualClock } from 'nestjs-distlimit/testing';
import { wrapped } from '../support/wrapped-driver.js';

const SECRET = 'a secret of some length';
const hashed = createHmac('sha256', SECRET).update('user:ann').digest('base64url');

@Injectable()
class Jobs {
  @CommonLimit('p', { onLimited: 'skip', key: (name: string) => name })
  run(_name: string) {
    return 'ran';
  }
}

it('hides subjects from stores and logs, and not from the caller', async () => {
  const clock = new ManualClock();
  const memory = new MemoryDriver({ clock });
  const seen = new Set<string>();
  const see = ({ subject }: Counter) => void seen.add(subject);
  const driver = wrapped(memory, {
    decide: (group: readonly Charge[]) => (group.forEach(see), memory.decide(group)),
    peek: (counter: Counter) => (see(counter), memory.peek(counter)),
    block: (counter: Counter, ms: number) => (see(counter), memory.block(counter, ms)),
    reset: (counter: Counter) => (see(counter), memory.reset(counter)),
    giveBack: (counter: Counter, cost: number) => (see(counter), memory.giveBack(counter, cost)),
  });
  const printed: string[] = [];
  const warn = jest
    .spyOn(Logger.prototype, 'warn')
    .mockImplementation((message: unknown) => void printed.push(String(message)));
  const testing = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({
        clock,
        driver,
        hashKeys: SECRET,
        policies: { p: { limit: 1, window: '1m', algorithm: 'fixed-window' } },
      }),
    ],
    providers: [Jobs],
  }).compile();
  await testing.init();
  try {
    const service = testing.get(RateLimiterService);
    const verdict = await service.consume('p', 'user:ann');
    expect(verdict).toMatchObject({ subject: 'user:ann', remaining: 0 });
    expect(await service.peek('p', 'user:ann')).toMatchObject({ subject: 'user:ann', allowed: false });
    await service.refund(verdict);
    await service.block('p', 'user:ann', '1s');
    await service.reset('p', 'user:ann');
    await service.refund('p', 'user:ann');
    expect([...seen]).toEqual([hashed]);
    const jobs = testing.get(Jobs);
    expect([await jobs.run('ann'), await jobs.run('ann')]).toEqual(['ran', undefined]);
    expect(printed).toHaveLength(1);
    expect(printed.join()).not.toContain('ann');
    expect([...seen].join()).not.toContain('ann');
  } finally {
    warn.mockRestore();
    await testing.close();
    await memory.close();
  }
});
