import { RateLimitError } from '../../core/errors.js';
import type { Batch } from './batch.js';
import { RESULT } from './protocol.js';

const BYTES = 8;

/** Reads the numbers of a reply, one after another. */
export class ReplyReader {
  readonly #bytes: Buffer;
  readonly #batch: Batch;
  #at = 0;

  constructor(bytes: Buffer, batch: Batch) {
    this.#bytes = bytes;
    this.#batch = batch;
  }

  next(): number {
    const number = this.#bytes.readDoubleLE(this.#at);
    this.#at += BYTES;
    return number;
  }

  skip(count: number): void {
    this.#at += count * BYTES;
  }

  /**
   * The first number of an operation's reply.
   * @throws RateLimitError with `RL_BROKEN_KEY` where a key holds something else
   */
  result(): number {
    const result = this.next();
    if (result !== RESULT.broken) return result;
    throw new RateLimitError(
      'RL_BROKEN_KEY',
      `the Redis key ${JSON.stringify(this.#batch.keyAt(this.next()))} holds something that is not a counter of this algorithm`,
    );
  }
}
