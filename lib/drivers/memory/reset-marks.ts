import type { Receipt } from '../../core/algorithm.js';
import { detached } from '../../core/detached.js';

/** Of so many subjects the last reset is remembered, the latest ones. */
const CAPACITY = 10_000;

/**
 * Which charges a reset has forgotten, so that giving one of them back takes nothing from those that came after.
 * Resets are rare, and receipts are given back soon or never: remembering the latest of them is enough.
 */
export class ResetMarks {
  readonly #serials = new Map<string, number>();

  /** Charges up to `serial` are forgotten. */
  mark(policy: string, subject: string, serial: number): void {
    const key = keyOf(policy, subject);
    this.#serials.delete(key);
    if (this.#serials.size >= CAPACITY) this.#serials.delete(this.#serials.keys().next().value!);
    this.#serials.set(detached(key), serial);
  }

  voids(policy: string, subject: string, { serial }: Receipt): boolean {
    if (this.#serials.size === 0) return false;
    const forgotten = this.#serials.get(keyOf(policy, subject));
    return forgotten !== undefined && serial !== undefined && serial <= forgotten;
  }
}

function keyOf(policy: string, subject: string): string {
  return `${policy}\n${subject}`;
}
