import type { ReconcileEvent } from '../../core/observer.js';

/** Adds up, in units of cost, what Redis is charged with after an outage and what it will not hear of. */
export class Reconciliation {
  readonly #onReconcile: (told: Omit<ReconcileEvent, 'driver'>) => void;
  #reconciled = 0;
  #dropped = 0;

  constructor(onReconcile: (told: Omit<ReconcileEvent, 'driver'>) => void) {
    this.#onReconcile = onReconcile;
  }

  charged(cost: number): void {
    this.#reconciled += cost;
  }

  dropped(cost: number): void {
    this.#dropped += cost;
  }

  /** Tells what has been added since it was last told, where there is something. */
  tell(): void {
    if (this.#reconciled === 0 && this.#dropped === 0) return;
    const told = { reconciled: this.#reconciled, dropped: this.#dropped };
    this.#reconciled = 0;
    this.#dropped = 0;
    this.#onReconcile(told);
  }
}
