import { RateLimitConfigError } from './errors.js';
import type { Policy, PolicyOptions } from './policy.js';
import { nameRule, validate } from './validation.js';
import { completePolicy, type PolicySurroundings } from './policy-completion.js';

/** Holds the policy of one name. A change swaps the reference: the next decision sees it. */
export interface PolicySlot {
  readonly name: string;
  current: Policy;
}

/** The policies by name. */
export class PolicyRegistry {
  readonly #slots = new Map<string, PolicySlot>();
  readonly #surroundings: PolicySurroundings;

  constructor(surroundings: PolicySurroundings) {
    this.#surroundings = surroundings;
  }

  /** @throws RateLimitConfigError where the options are wrong or the name is taken */
  define(name: string, options: PolicyOptions, path: string): PolicySlot {
    const slot = this.draft(name, options, path);
    this.add(slot, path);
    return slot;
  }

  /** A policy that is complete, and not kept yet. */
  draft(name: string, options: PolicyOptions, path: string): PolicySlot {
    validate(nameRule, name, `${path}: the name of a policy`);
    return { name, current: completePolicy(name, options, path, this.#surroundings) };
  }

  /** @throws RateLimitConfigError where the name is taken */
  add(slot: PolicySlot, path: string): void {
    if (this.#slots.has(slot.name)) {
      throw new RateLimitConfigError({
        code: 'RL_DUPLICATE_POLICY',
        path,
        expected: 'a name that no other policy has',
        received: slot.name,
      });
    }
    this.#slots.set(slot.name, slot);
  }

  /** @throws RateLimitConfigError with `RL_UNKNOWN_POLICY` */
  slot(name: string, path = 'policy'): PolicySlot {
    const slot = this.#slots.get(name);
    if (slot !== undefined) return slot;
    const known = [...this.#slots.keys()];
    throw new RateLimitConfigError({
      code: 'RL_UNKNOWN_POLICY',
      path,
      expected: known.length === 0 ? 'the name of a policy (none is defined)' : `one of ${known.join(', ')}`,
      received: name,
    });
  }

  has(name: string): boolean {
    return this.#slots.has(name);
  }

  all(): readonly Policy[] {
    return [...this.#slots.values()].map((slot) => slot.current);
  }

  /** The policy that a patch would make. Nothing has changed yet. */
  patched(slot: PolicySlot, patch: Partial<PolicyOptions>): Policy {
    const options = { ...slot.current.options, ...patch };
    return completePolicy(slot.name, options, `policies.${slot.name}`, this.#surroundings);
  }
}
