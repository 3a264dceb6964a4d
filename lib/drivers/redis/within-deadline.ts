import { RateLimitError } from '../../core/errors.js';
import { startDeadline } from './turn-batcher.js';

/** What Redis answers, or `RL_REDIS_TIMEOUT`. */
export function withinDeadline<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const deadline = startDeadline(timeoutMs, () => reject(timeout(timeoutMs)));
    work()
      .then(resolve, reject)
      .finally(() => deadline.stop());
  });
}

export function timeout(timeoutMs: number): RateLimitError {
  return new RateLimitError('RL_REDIS_TIMEOUT', `Redis did not answer within ${timeoutMs} ms`);
}
