import { RateLimitConfigError, relocated } from './errors.js';
import type { Policy, PolicyOptions } from './policy.js';
import { nameRule, validate } from './validation.js';
import { completePolicy, ownCopy, type PolicySurroundings } from './policy-completion.js';
import { isComplete, PolicyLayers, whereIn } from './policy-layers.js';

type Options = Readonly<Partial<PolicyOptions>>;

/** Holds the policy of one name. A change swaps the reference: the next decision sees it. */
export interface PolicySlot {
  readonly name: string;
  /** What the code says: the lowest layer. */
  readonly code: Options;
  /** What was changed in this process: the highest layer. */
  patch: Options;
  current: Policy;
}

/** Module, class and method: what no service asks for by its name. */
const IS_INLINE = /^[^.\s]+\.[^.\s]+\.[^.\s]+$/;

/** The policies by name. */
export class PolicyRegistry {
  readonly #slots = new Map<string, PolicySlot>();
  readonly #surroundings: PolicySurroundings;
  readonly #layers: PolicyLayers;
  /** What only sources define, and nobody has asked for: an inline policy of that name may still come. */
  readonly #unclaimed = new Set<string>();
  /** Once the application runs, what a source says wrongly of a policy that is made later fails no call. */
  #lenient = false;

  constructor(surroundings: PolicySurroundings, layers = new PolicyLayers()) {
    this.#surroundings = surroundings;
    this.#layers = layers;
  }

  /** @throws RateLimitConfigError where the options are wrong or the name is taken */
  define(name: string, options: Options, path: string): PolicySlot {
    const slot = this.draft(name, options, path);
    this.add(slot, path);
    return slot;
  }

  /** Defines what only sources do. */
  defineSourced(): void {
    for (const name of this.#layers.names()) {
      if (!this.#slots.has(name) && isComplete(this.#layers.over(name, {})))
        this.addSourced(this.draft(name, {}, name));
    }
  }

  /** A policy that is complete, and not kept yet. */
  draft(name: string, options: Options, path: string): PolicySlot {
    validate(nameRule, name, `${path}: the name of a policy`);
    return { name, code: copyOf(options), patch: {}, current: this.#completed(name, options, path) };
  }

  /** @throws RateLimitConfigError where the name is taken */
  add(slot: PolicySlot, path: string): void {
    if (this.has(slot.name)) {
      throw new RateLimitConfigError({
        code: 'RL_DUPLICATE_POLICY',
        path,
        expected: 'a name that no other policy has',
        received: slot.name,
      });
    }
    this.#unclaimed.delete(slot.name);
    this.#slots.set(slot.name, slot);
  }

  /** Keeps a policy that only sources define. */
  addSourced(slot: PolicySlot): void {
    this.#slots.set(slot.name, slot);
    this.#unclaimed.add(slot.name);
  }

  /** @throws RateLimitConfigError with `RL_UNKNOWN_POLICY` */
  slot(name: string, path = 'policy'): PolicySlot {
    const slot = this.#slots.get(name);
    if (slot !== undefined) {
      this.#unclaimed.delete(name);
      return slot;
    }
    const known = [...this.#slots.keys()];
    throw new RateLimitConfigError({
      code: 'RL_UNKNOWN_POLICY',
      path,
      expected: known.length === 0 ? 'the name of a policy (none is defined)' : `one of ${known.join(', ')}`,
      received: name,
    });
  }

  /** The policy's place, without asking for it. */
  find(name: string): PolicySlot | undefined {
    return this.#slots.get(name);
  }

  /** Whether the name is taken. */
  has(name: string): boolean {
    return this.#slots.has(name) && !this.#unclaimed.has(name);
  }

  all(): readonly Policy[] {
    return [...this.#slots.values()].map((slot) => slot.current);
  }

  /** The application has started. Reports what sources say of policies that there are not. */
  started(): void {
    this.#lenient = true;
    for (const name of this.#layers.names()) {
      const where = this.#layers.where(name)!;
      if (!this.#slots.has(name)) {
        this.#surroundings.report(unknownPolicy(where, name));
      } else if (this.#unclaimed.has(name) && IS_INLINE.test(name)) {
        this.#surroundings.report(
          unknownPolicy(where, name, 'no decorator has an inline policy of that name'),
        );
      }
    }
  }

  /** The policy that the options would make. Nothing has changed yet. */
  complete(
    name: string,
    options: Options,
    where: (field?: string) => string | undefined = () => undefined,
  ): Policy {
    const pathAt = (place: string | undefined) =>
      place === undefined ? `policies.${name}` : `${place}: policies.${name}`;
    const path = pathAt(where());
    try {
      return completePolicy(name, options, path, this.#surroundings);
    } catch (error) {
      if (!(error instanceof RateLimitConfigError) || !error.path.startsWith(`${path}.`)) throw error;
      const below = error.path.slice(path.length);
      const [, field] = below.split(/[.(]/);
      throw relocated(error, pathAt(where(field)) + below);
    }
  }

  /** The policy that a patch would make. Nothing has changed yet. */
  patched(slot: PolicySlot, patch: Options): Policy {
    const merged = { ...this.#layers.over(slot.name, slot.code), ...patch };
    // Where no layer says it any more, it stays what it was.
    return this.complete(slot.name, isComplete(merged) ? merged : { ...slot.current.options, ...merged });
  }

  /** The code's policy, as sources change it. Those whose entries stand for themselves are left out where they can't be. */
  #completed(name: string, code: Options, path: string): Policy {
    for (;;) {
      if (!this.#layers.concern(name)) return completePolicy(name, code, path, this.#surroundings);
      try {
        return this.complete(name, this.#layers.over(name, code), (field) => this.#layers.where(name, field));
      } catch (error) {
        const layer = this.#layers.all.findLast(
          ({ unit, entries }) => entries.has(name) && (unit === 'policy' || this.#lenient),
        );
        if (layer === undefined || !(error instanceof RateLimitConfigError)) throw error;
        const message = `${whereIn(layer, name)}: what it says of policy '${name}' is not used: ${error.message}`;
        this.#surroundings.report({ code: 'RL_SOURCE_REJECTED', message });
        const entries = new Map(layer.entries);
        entries.delete(name);
        layer.entries = entries;
      }
    }
  }
}

/** What is no object is refused when it is completed. */
function copyOf(options: Options): Options {
  return typeof options === 'object' && options !== null ? ownCopy(options) : {};
}

export function unknownPolicy(
  where: string,
  name: string,
  why = 'nothing defines it, and it lacks a limit or a window of its own',
) {
  return {
    code: 'RL_UNKNOWN_POLICY',
    message: `${where}: policy '${name}' has no effect: ${why}`,
  } as const;
}
