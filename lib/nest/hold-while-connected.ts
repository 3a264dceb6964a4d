import type { Clock } from '../core/clock.js';
import { holdUntil } from '../core/hold-until.js';

/** Where a caller's end of the line says that it has gone. */
export interface Line {
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Who has to be told that a line's other end has left. */
interface Waiting {
  readonly leaves: Set<() => void>;
  readonly listener: () => void;
}

/** One listener a line, however many of its calls are held: Node warns of more than ten. */
const waiting = new WeakMap<Line, Waiting>();

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
  const { leaves, listener } = waitingOn(line, event);
  leaves.add(leave);
  try {
    if (hasLeft) leave();
    await holdUntil(clock, clock.now() + delayMs, left.signal);
  } finally {
    leaves.delete(leave);
    if (leaves.size === 0 && waiting.get(line)?.listener === listener) {
      waiting.delete(line);
      line.off(event, listener);
    }
  }
}

function waitingOn(line: Line, event: string): Waiting {
  const known = waiting.get(line);
  if (known !== undefined) return known;
  const leaves = new Set<() => void>();
  const listener = () => {
    waiting.delete(line);
    for (const leave of leaves) leave();
  };
  const made = { leaves, listener };
  waiting.set(line, made);
  line.once(event, listener);
  return made;
}
