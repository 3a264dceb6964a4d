import { EventEmitter } from 'node:events';
import { ManualClock } from 'nestjs-distlimit/testing';
import { holdWhileConnected } from '../../../lib/nest/hold-while-connected.js';

it('has one listener for all calls of a line that are held, and none afterwards', async () => {
  const clock = new ManualClock();
  const line = new EventEmitter();
  const held = Array.from({ length: 20 }, (_, i) =>
    holdWhileConnected(clock, i < 10 ? 100 : 200, line, 'close', false),
  );
  expect(line.listenerCount('close')).toBe(1);
  clock.advance(100);
  await Promise.all(held.slice(0, 10));
  expect(line.listenerCount('close')).toBe(1);
  line.emit('close');
  const left = await Promise.allSettled(held.slice(10));
  expect(left.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 'rejected'));
  expect(line.listenerCount('close')).toBe(0);
});

it('starts anew on a line that had nothing to hold any more', async () => {
  const clock = new ManualClock();
  const line = new EventEmitter();
  for (let i = 0; i < 2; i++) {
    const held = holdWhileConnected(clock, 100, line, 'close', false);
    clock.advance(100);
    await held;
    expect(line.listenerCount('close')).toBe(0);
  }
  const gone = holdWhileConnected(clock, 100, line, 'close', true);
  await expect(gone).rejects.toThrow();
  expect(line.listenerCount('close')).toBe(0);
});
