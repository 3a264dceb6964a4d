import type { DiagnosticSink } from './diagnostics.js';
import { messageOf, RateLimitConfigError } from './errors.js';
import type { ObserverHub } from './observer.js';
import type { Policy, PolicyOptions } from './policy.js';
import {
  changedFields,
  isComplete,
  refuseEntry,
  whereIn,
  withoutFields,
  type Entries,
  type PolicyLayers,
  type SourceLayer,
} from './policy-layers.js';
import { checkPatch } from './policy-completion.js';
import { unknownPolicy, type PolicyRegistry, type PolicySlot } from './policy-registry.js';

type Options = Readonly<Partial<PolicyOptions>>;

/** What has to be done for a change, when all of it was found to be possible. */
interface Plan {
  readonly entries: Entries;
  readonly changes: {
    readonly slot: PolicySlot;
    readonly patch: Options;
    readonly current: Policy | undefined;
  }[];
  readonly defined: PolicySlot[];
  readonly kept: string[];
  readonly unknown: string[];
}

/** The one way in which policies change while the application runs. */
export class PolicyChanges {
  /** Throws where a change can't work. */
  validate: (slot: PolicySlot, candidate: Policy) => void = () => {};
  /** Called after changes. */
  onChanged: () => void = () => {};
  readonly #registry: PolicyRegistry;
  readonly #layers: PolicyLayers;
  readonly #observers: ObserverHub;

  constructor(registry: PolicyRegistry, layers: PolicyLayers, observers: ObserverHub) {
    this.#registry = registry;
    this.#layers = layers;
    this.#observers = observers;
  }

  /**
   * Changes a policy in this process.
   * @throws RateLimitConfigError where the patch is wrong; then nothing has changed
   */
  patch(slot: PolicySlot, patch: Options): Policy {
    checkPatch(patch, `updatePolicy('${slot.name}')`);
    const whole = { ...slot.patch, ...patch };
    const current = this.#registry.patched(slot, whole);
    this.validate(slot, current);
    slot.patch = whole;
    this.#make([{ slot, current }]);
    return current;
  }

  /** Takes over what a source says from now on, or reports why not: then what it said before stays. */
  fromSource(layer: SourceLayer, entries: Entries, report: DiagnosticSink): void {
    let plan: Plan;
    try {
      plan = this.#planFor(layer, entries, (name, error) => {
        if (layer.unit === 'set' || !(error instanceof RateLimitConfigError)) throw error;
        refuseEntry(layer, name, `policy '${name}' stays as it was: ${error.message}`, report);
      });
    } catch (error) {
      report({
        code: 'RL_SOURCE_REJECTED',
        message: `${layer.name}: what was there before stays: ${messageOf(error)}`,
      });
      return;
    }
    const differences = differencesOf(layer.entries, plan.entries);
    for (const name of plan.kept) report(keptPolicy(layer.name, name));
    for (const name of plan.unknown) report(unknownPolicy(whereIn(layer, name), name));
    for (const [name, entry] of plan.entries)
      if (entry !== layer.entries.get(name)) layer.refused.delete(name);
    layer.entries = plan.entries;
    for (const slot of plan.defined) {
      this.#registry.addSourced(slot);
      this.#observers.emit('policyChange', { previous: undefined, current: slot.current });
    }
    for (const { slot, patch } of plan.changes) slot.patch = patch;
    this.#make(plan.changes.filter((change) => change.current !== undefined) as Change[]);
    if (differences.length > 0) {
      report({ code: 'RL_SOURCE_CHANGED', message: `${layer.name}: ${shorten(differences)}` });
    }
  }

  /**
   * Looks whether a source could say something else of a policy.
   * @throws RateLimitConfigError where it couldn't
   */
  rehearse(layer: SourceLayer, name: string, entry: Options): void {
    const entries = new Map(layer.entries);
    entries.set(name, entry);
    this.#planFor(layer, entries, (_, error) => {
      throw error;
    });
  }

  /** Forgets what was changed in this process: somebody has decided on these fields for the fleet since. */
  forgetPatch(slot: PolicySlot, fields: readonly string[]): Policy {
    const patch = withoutFields(slot.patch, fields);
    const current = this.#registry.patched(slot, patch);
    slot.patch = patch;
    if (changedFields(slot.current.options, current.options).length > 0) this.#make([{ slot, current }]);
    return slot.current;
  }

  #planFor(layer: SourceLayer, wanted: Entries, refused: (name: string, error: unknown) => void): Plan {
    const entries = new Map(wanted);
    const plan: Plan = { entries, changes: [], defined: [], kept: [], unknown: [] };
    for (const name of new Set([...layer.entries.keys(), ...wanted.keys()])) {
      const fields = changedFields(layer.entries.get(name), wanted.get(name));
      if (fields.length === 0) continue;
      try {
        this.#planPolicy(plan, layer, name, fields);
      } catch (error) {
        refused(name, error);
        const before = layer.entries.get(name);
        if (before === undefined) entries.delete(name);
        else entries.set(name, before);
      }
    }
    return plan;
  }

  #planPolicy(plan: Plan, layer: SourceLayer, name: string, fields: readonly string[]): void {
    const instead = { layer, entries: plan.entries };
    const where = (field?: string) => (plan.entries.has(name) ? whereIn(layer, name, field) : layer.name);
    const slot = this.#registry.find(name);
    if (slot === undefined) {
      const options = this.#layers.over(name, {}, instead);
      if (!isComplete(options)) return void plan.unknown.push(name);
      plan.defined.push({
        name,
        code: {},
        patch: {},
        current: this.#registry.complete(name, options, where),
      });
      return;
    }
    // The last who decided on a field is right.
    const patch = withoutFields(slot.patch, fields);
    const merged = { ...this.#layers.over(name, slot.code, instead), ...patch };
    const isKept = !isComplete(merged);
    const options = isKept ? { ...slot.current.options, ...merged } : merged;
    if (changedFields(slot.current.options, options).length === 0) {
      plan.changes.push({ slot, patch, current: undefined });
    } else {
      const current = this.#registry.complete(name, options, where);
      this.validate(slot, current);
      plan.changes.push({ slot, patch, current });
    }
    if (isKept) plan.kept.push(name);
  }

  #make(changes: readonly Change[]): void {
    const made = changes.map(({ slot, current }) => {
      const previous = slot.current;
      slot.current = current;
      return { previous, current };
    });
    for (const event of made) this.#observers.emit('policyChange', event);
    this.onChanged();
  }
}

interface Change {
  readonly slot: PolicySlot;
  readonly current: Policy;
}

function keptPolicy(source: string, name: string) {
  return {
    code: 'RL_POLICY_KEPT',
    message: `${source}: policy '${name}' has no limit or no window any more, and stays as it was`,
  } as const;
}

const MOST_DIFFERENCES = 20;

/** What is different, in words: `login.limit 5 → 10`. */
function differencesOf(before: Entries, after: Entries): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [old, now] = [before.get(name), after.get(name)];
    return changedFields(old, now).map(
      (field) => `${name}.${field} ${shown(old?.[field])} → ${shown(now?.[field])}`,
    );
  });
}

function shown(value: unknown): string {
  if (value === undefined) return '(unset)';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  return Array.isArray(value) ? value.map(shown).join('+') : `a ${typeof value}`;
}

function shorten(differences: readonly string[]): string {
  const more = differences.length - MOST_DIFFERENCES;
  const shownOnes = differences.slice(0, MOST_DIFFERENCES).join(', ');
  return more > 0 ? `${shownOnes}, and ${more} more` : shownOnes;
}
