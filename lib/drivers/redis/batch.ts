import type { Algorithm, Quota } from '../../core/algorithm.js';
import type { Counter } from '../../core/driver.js';
import type { CounterKeys, StorageKeys } from '../../core/storage-key.js';
import { NumberPacker } from './number-packer.js';
import { NONE } from './protocol.js';
import type { Script, UniversalScript } from './universal-script.js';

/** One command, ready to be sent. */
export interface PackedBatch {
  readonly script: Script;
  /** Each counter's key, and its block's. */
  readonly keys: readonly string[];
  readonly numbers: Buffer;
}

/** Puts operations together for one run of the script: each key and each quota travels once. */
export class Batch {
  readonly #storage: StorageKeys;
  readonly #script: UniversalScript;
  readonly #keys: string[] = [];
  readonly #keyIndexes = new Map<string, number>();
  /** The indexes of keys that are named more than once. */
  readonly #hot = new Set<number>();
  readonly #quotaIndexes = new Map<Quota, { readonly algorithm: Algorithm; readonly index: number }>();
  readonly #quotas = new NumberPacker();
  readonly #operations = new NumberPacker();
  #quotaCount = 0;

  constructor(storage: StorageKeys, script: UniversalScript) {
    this.#storage = storage;
    this.#script = script;
  }

  put(number: number): void {
    this.#operations.put(number);
  }

  /** Names a counter's key. */
  putKey({ policy, subject }: Counter): void {
    this.put(this.#keyIndex(this.#storage.of(policy.name, policy.algorithm, subject)));
  }

  /** Names what a counter is counted by. */
  putQuota({ policy, quota }: Counter): void {
    const known = this.#quotaIndexes.get(quota);
    if (known?.algorithm === policy.arithmetic) return this.put(known.index);
    const index = ++this.#quotaCount;
    this.#quotaIndexes.set(quota, { algorithm: policy.arithmetic, index });
    this.#quotas.put(this.#script.indexOf(policy.arithmetic));
    this.#quotas.put(quota.limit);
    this.#quotas.put(quota.windowMs);
    this.#quotas.put(quota.burst);
    this.#quotas.put(quota.maxDelayMs);
    this.#quotas.put(policy.arithmetic.idleMs(quota));
    this.put(index);
  }

  /** The key at an index of the reply. */
  keyAt(index: number): string {
    return this.#keys[2 * (index - 1)]!;
  }

  /**
   * @param notAfter the server's time, in milliseconds, after which nothing may be done any more
   * @param now the time of an explicit clock
   */
  pack(notAfter: number = NONE, now: number = NONE): PackedBatch {
    const all = new NumberPacker();
    all.put(notAfter);
    all.put(now);
    all.put(this.#quotaCount);
    all.append(this.#quotas);
    all.put(this.#hot.size);
    for (const index of this.#hot) all.put(index);
    all.append(this.#operations);
    return { script: this.#script.current, keys: this.#keys, numbers: all.take() };
  }

  #keyIndex({ counter, block }: CounterKeys): number {
    const known = this.#keyIndexes.get(counter);
    if (known !== undefined) {
      this.#hot.add(known);
      return known;
    }
    this.#keys.push(counter, block);
    const index = this.#keys.length / 2;
    this.#keyIndexes.set(counter, index);
    return index;
  }
}
