import { outsideAnyCall } from './async-context.js';
import { startTimer, type Clock } from './clock.js';

/**
 * A one-shot timer that keeps neither the process alive nor anything of the call during which it was started. In the
 * clock's own time where the clock has timers. Returns how to cancel it.
 */
export function startBackgroundTimer(
  clock: Clock | undefined,
  callback: () => void,
  delayMs: number,
): () => void {
  return outsideAnyCall(() => {
    if (clock?.setTimer !== undefined) return startTimer(clock, callback, delayMs);
    const timer = setTimeout(callback, Math.max(0, delayMs));
    timer.unref();
    return () => clearTimeout(timer);
  });
}
