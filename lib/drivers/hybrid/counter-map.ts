import type { Counter } from '../../core/driver.js';

/** How many entries one sweep looks at. */
const SWEPT_AT_ONCE = 10_000;

/** Something for each of many counters, never for more than `maxEntries`: then those that came first make room. */
export class CounterMap<T> {
  readonly #maxEntries: number;
  readonly #onRemoved: ((value: T) => void) | undefined;
  readonly #policies = new Map<string, Map<string, T>>();
  /** Goes on where it last removed one: from a new iterator on V8 passes all that was removed before. */
  readonly #oldest = new WeakMap<Map<string, T>, Iterator<[string, T]>>();
  #size = 0;
  #sweeping: Iterator<readonly [Map<string, T>, string, T]> | undefined;

  /** @param onRemoved told of what made room for others */
  constructor(maxEntries: number, onRemoved?: (value: T) => void) {
    this.#maxEntries = maxEntries;
    this.#onRemoved = onRemoved;
  }

  get size(): number {
    return this.#size;
  }

  get({ policy, subject }: Counter): T | undefined {
    return this.#policies.get(policy.name)?.get(subject);
  }

  set({ policy, subject }: Counter, value: T): void {
    let subjects = this.#policies.get(policy.name);
    if (subjects === undefined) this.#policies.set(policy.name, (subjects = new Map()));
    if (!subjects.has(subject)) {
      if (this.#size >= this.#maxEntries) this.#makeRoom(subjects);
      this.#size++;
    }
    subjects.set(subject, value);
  }

  delete({ policy, subject }: Counter): void {
    if (this.#policies.get(policy.name)?.delete(subject) === true) this.#size--;
  }

  /** May be changed meanwhile: what is removed is not met, what is added may be. */
  *values(): Generator<T> {
    for (const subjects of this.#policies.values()) yield* subjects.values();
  }

  /** Removes what `isOver` of some thousand entries; called again it goes on with the next ones. */
  sweep(isOver: (value: T) => boolean): void {
    this.#sweeping ??= this.#entries();
    for (let i = 0; i < SWEPT_AT_ONCE; i++) {
      const next = this.#sweeping.next();
      if (next.done === true) {
        this.#sweeping = undefined;
        return;
      }
      const [subjects, subject, value] = next.value;
      if (isOver(value) && subjects.delete(subject)) this.#size--;
    }
  }

  clear(): void {
    this.#policies.clear();
    this.#size = 0;
    this.#sweeping = undefined;
  }

  *#entries(): Generator<readonly [Map<string, T>, string, T]> {
    for (const subjects of this.#policies.values()) {
      for (const [subject, value] of subjects) yield [subjects, subject, value];
    }
  }

  /** The policy that grows gives up its own oldest first. */
  #makeRoom(growing: Map<string, T>): void {
    const crowded = growing.size > 0 ? growing : [...this.#policies.values()].find(({ size }) => size > 0);
    if (crowded === undefined) return;
    const [subject, value] = this.#oldestOf(crowded);
    crowded.delete(subject);
    this.#size--;
    this.#onRemoved?.(value);
  }

  #oldestOf(subjects: Map<string, T>): [string, T] {
    const next = this.#oldest.get(subjects)?.next();
    if (next?.done === false) return next.value;
    const entries = subjects.entries();
    this.#oldest.set(subjects, entries);
    return entries.next().value!;
  }
}
