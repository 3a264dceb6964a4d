import { startTimer, type Clock } from './clock.js';

/** Resolves at `time` of the clock; rejects with the signal's reason as soon as it is aborted. */
export function holdUntil(clock: Clock, time: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let cancel: () => void;
    const leave = () => {
      cancel();
      reject(signal!.reason as Error);
    };
    const look = () => {
      const left = time - clock.now();
      if (left > 0) {
        cancel = startTimer(clock, look, left);
        return;
      }
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    cancel = startTimer(clock, look, time - clock.now());
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted) leave();
  });
}
