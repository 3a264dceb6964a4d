import type { DiagnosticSink } from './diagnostics.js';
import { messageOf, RateLimitConfigError } from './errors.js';
import type { Policy, PolicyOptions } from './policy.js';
import type { PolicyChanges } from './policy-changes.js';
import { checkPatch } from './policy-completion.js';
import {
  PolicyLayers,
  refuseEntry,
  whereIn,
  withoutFields,
  type Entries,
  type SourceLayer,
} from './policy-layers.js';
import type { PolicySlot } from './policy-registry.js';
import { nameRule, validate } from './validation.js';
import type { OpenPolicySource, PolicySet, PolicySource, PolicySourceContext } from './policy-source.js';

/** The sources of one application: opened before its policies are made, heard while it runs, closed with it. */
export class PolicySources {
  readonly layers: PolicyLayers;
  readonly #sources: readonly PolicySource[];
  readonly #report: DiagnosticSink;
  #changes: PolicyChanges | undefined;
  #closed = false;

  /** @param report is told the same as often as it happens */
  constructor(sources: readonly PolicySource[], report: DiagnosticSink) {
    this.#sources = sources;
    this.#report = report;
    this.layers = new PolicyLayers(
      sources.map(({ name, unit = 'set' }) => ({
        name,
        unit,
        entries: new Map(),
        opened: undefined,
        refused: new Map(),
      })),
    );
  }

  /** @throws RateLimitConfigError, or what a source rejects with; then none is left open */
  async open(context: Pick<PolicySourceContext, 'redis' | 'prefix'>): Promise<void> {
    try {
      await Promise.all(this.#sources.map((source, i) => this.#open(source, this.layers.all[i]!, context)));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** From now on what sources tell changes policies. */
  attach(changes: PolicyChanges): void {
    this.#changes = changes;
  }

  /**
   * Stores a change for the fleet, and has it here when it resolves.
   * @throws RateLimitConfigError where the patch is wrong, or no source can; then nothing has changed
   */
  async update(slot: PolicySlot, patch: Partial<PolicyOptions>): Promise<Policy> {
    const { name } = slot;
    const layer = this.layers.all.findLast(({ opened }) => opened?.update !== undefined);
    if (layer === undefined || this.#changes === undefined) {
      throw new RateLimitConfigError({
        code: 'RL_NO_FLEET_SOURCE',
        path: 'updatePolicy.scope',
        expected: "'process', or a source that reaches the fleet: sources: [redisSource()]",
        received: 'fleet',
      });
    }
    const fields = Object.keys(patch ?? {});
    const given = checkPatch(patch, `updatePolicy('${name}')`);
    this.#changes.rehearse(layer, name, {
      ...withoutFields(layer.entries.get(name) ?? {}, fields),
      ...given,
    });
    await layer.opened!.update!(name, { ...patch });
    this.#tellOfHigher(layer, name, fields);
    return this.#changes.forgetPatch(slot, fields);
  }

  /** What a later source says of a field holds, whatever is stored. */
  #tellOfHigher(layer: SourceLayer, name: string, fields: readonly string[]): void {
    const { all } = this.layers;
    for (const higher of all.slice(all.indexOf(layer) + 1)) {
      const said = fields.filter((field) => Object.hasOwn(higher.entries.get(name) ?? {}, field));
      if (said.length === 0) continue;
      this.#report({
        code: 'RL_OPTION_HAS_NO_EFFECT',
        message: `updatePolicy('${name}'): ${said.join(', ')} is stored for the fleet, but what ${higher.name} says, a later source, holds`,
      });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.layers.all.map(async ({ opened }) => opened?.close?.()));
  }

  async #open(
    source: PolicySource,
    layer: SourceLayer,
    context: Pick<PolicySourceContext, 'redis' | 'prefix'>,
  ): Promise<void> {
    let told = false;
    const opened: OpenPolicySource | undefined = await source.open({
      ...context,
      report: this.#report,
      changed: (policies) => {
        told = true;
        this.#changed(layer, policies);
      },
    });
    if (typeof opened !== 'object' || opened === null) {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_OPTION',
        path: `${layer.name}: open()`,
        expected: 'an object with policies',
        received: opened,
      });
    }
    layer.opened = opened;
    // Another source has failed meanwhile.
    if (this.#closed) await opened.close?.();
    else if (!told) layer.entries = this.#checked(layer, opened.policies);
  }

  #changed(layer: SourceLayer, policies: PolicySet): void {
    if (this.#closed) return;
    try {
      const entries = this.#checked(layer, policies);
      if (this.#changes === undefined) layer.entries = entries;
      else this.#changes.fromSource(layer, entries, this.#report);
    } catch (error) {
      this.#report({
        code: 'RL_SOURCE_REJECTED',
        message: `${layer.name}: what was there before stays: ${messageOf(error)}`,
      });
    }
  }

  /** @throws RateLimitConfigError where the whole set is refused */
  #checked(layer: SourceLayer, policies: PolicySet): Entries {
    if (typeof policies !== 'object' || policies === null) {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_OPTION',
        path: layer.name,
        expected: 'options by the names of policies',
        received: policies,
      });
    }
    const entries = new Map<string, Readonly<Partial<PolicyOptions>>>();
    for (const [name, options] of Object.entries(policies)) {
      try {
        validate(nameRule, name, `${layer.name}: the name of a policy`);
        entries.set(name, checkPatch(options, `${whereIn(layer, name)}: policies.${name}`));
      } catch (error) {
        if (layer.unit === 'set') throw error;
        const before = layer.entries.get(name);
        if (before !== undefined) entries.set(name, before);
        const outcome = before === undefined ? 'is left out' : 'stays as it was';
        refuseEntry(layer, name, `policy '${name}' ${outcome}: ${(error as Error).message}`, this.#report);
      }
    }
    return entries;
  }
}
