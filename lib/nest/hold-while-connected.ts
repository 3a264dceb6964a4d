import type { Clock } from '../core/clock.js';
import { holdUntil } from '../core/hold-until.js';

/** Where a caller's end of the line says that it has gone. */
export interface Line {
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Resolves after so long; rejects as soon as the caller has left, which `event` of its line says. */
export async function holdWhileConnected(
  clock: Clock,
  delayMs: number,
  line: Line,
  event: string,
  hasLeft: boolean,
): Promise<void> {
  const left = new AbortController();
  const leave = () => left.abort();
  line.once(event, leave);
  try {
    if (hasLeft) leave();
    await holdUntil(clock, clock.now() + delayMs, left.signal);
  } finally {
    line.off(event, leave);
  }
}
