import type { Algorithm, Quota } from '../../core/algorithm.js';
import { SubjectTable } from './subject-table.js';

/** The counters of one policy, and what follows from the quota that was asked for last. */
export class PolicyTables {
  readonly algorithm: Algorithm;
  readonly counters: SubjectTable;
  /** Whether calls may be held, so that some can't go at once. */
  readonly shapes: boolean;
  /** Registers to step on before there is an entry. */
  readonly scratch: Float64Array;
  /** Charges up to this one were made by another algorithm. */
  readonly sinceSerial: number;
  #idleOf: Quota | undefined;
  #idleMs = 0;
  #patient: Quota | undefined;
  #impatient: Quota | undefined;

  constructor(policy: string, algorithm: Algorithm, sinceSerial: number) {
    const width = widthOf(algorithm);
    this.algorithm = algorithm;
    this.sinceSerial = sinceSerial;
    this.counters = new SubjectTable(policy, width, algorithm.shape === 'log');
    this.scratch = new Float64Array(width);
    this.shapes = algorithm.uses.includes('maxDelay');
  }

  /** The algorithm's `idleMs`, kept: it divides, and a policy's quota seldom changes. */
  idleMs(quota: Quota): number {
    return this.#idleOf === quota ? this.#idleMs : this.#idleMsAnew(quota);
  }

  #idleMsAnew(quota: Quota): number {
    this.#idleOf = quota;
    this.#idleMs = this.algorithm.idleMs(quota);
    return this.#idleMs;
  }

  /** The quota under which only what need not wait is admitted. Kept, so that asking again allocates nothing. */
  impatient(quota: Quota): Quota {
    if (this.#patient !== quota || this.#impatient === undefined) {
      this.#patient = quota;
      this.#impatient = { ...quota, maxDelayMs: 0 };
    }
    return this.#impatient;
  }
}

/** How many registers a counter has. */
function widthOf(algorithm: Algorithm): number {
  return algorithm.shape === 'registers' ? algorithm.registers.length : 0;
}
