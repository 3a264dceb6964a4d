import type { Clock } from '../../core/clock.js';
import { NumberPacker } from '../redis/number-packer.js';
import { BATCH, NONE } from '../redis/protocol.js';
import type { RedisConnection } from '../redis/redis-connection.js';
import type { Script } from '../redis/universal-script.js';
import { timeout, withinDeadline } from '../redis/within-deadline.js';
import type { ServerClock } from './server-clock.js';

const BYTES = 8;

export interface RedisCallOptions {
  readonly connection: RedisConnection;
  readonly timeoutMs: number;
  /** Learns from every answer, and knows when it is too late for one. */
  readonly serverClock: ServerClock;
  /** An explicit clock, in place of Redis' own time. */
  readonly clock: Clock | undefined;
}

/** Runs scripts of the hybrid driver's own, within the deadline of every other call. */
export class RedisCall {
  readonly #options: RedisCallOptions;

  constructor(options: RedisCallOptions) {
    this.#options = options;
  }

  /**
   * @param numbers what the script is given after not-after and the explicit clock's time
   * @returns what it answered after the server's time and whether it was in time
   * @throws whatever says that Redis can't be reached, or `RL_REDIS_TIMEOUT`
   */
  async run(script: Script, key: string, numbers: readonly number[], text: string): Promise<number[]> {
    const { connection, serverClock, clock, timeoutMs } = this.#options;
    await connection.available();
    const sentAt = performance.now();
    const packer = new NumberPacker();
    packer.put(serverClock.earliestAt(sentAt + timeoutMs) ?? NONE);
    packer.put(clock === undefined ? NONE : Math.floor(clock.now()));
    for (const number of numbers) packer.put(number);
    const reply = await withinDeadline(timeoutMs, () =>
      connection.run({ script, keys: [key], numbers: packer.take() }, text),
    );
    const [serverMs = 0, outcome, ...answers] = doublesOf(reply);
    serverClock.learn(serverMs, sentAt, performance.now());
    if (outcome === BATCH.late) throw timeout(timeoutMs);
    return answers;
  }
}

function doublesOf(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length / BYTES }, (_, i) => bytes.readDoubleLE(i * BYTES));
}
