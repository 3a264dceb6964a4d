import { isDeepStrictEqual } from 'node:util';
import type { DiagnosticSink } from './diagnostics.js';
import type { PolicyOptions } from './policy.js';
import type { OpenPolicySource } from './policy-source.js';

type Options = Readonly<Partial<PolicyOptions>>;

/** Options by the names of policies, checked one by one. */
export type Entries = ReadonlyMap<string, Options>;

/** What one source says at the moment. */
export interface SourceLayer {
  readonly name: string;
  readonly unit: 'set' | 'policy';
  entries: Entries;
  opened: OpenPolicySource | undefined;
  /** Why entries were refused, by policy: told once as long as it stays the same. */
  readonly refused: Map<string, string>;
}

/** Reports why an entry is refused, unless that was the last thing told of it. */
export function refuseEntry(layer: SourceLayer, name: string, message: string, report: DiagnosticSink): void {
  if (layer.refused.get(name) === message) return;
  layer.refused.set(name, message);
  report({ code: 'RL_SOURCE_REJECTED', message });
}

/** What the sources say, the lowest first. */
export class PolicyLayers {
  readonly all: readonly SourceLayer[];

  constructor(all: readonly SourceLayer[] = []) {
    this.all = all;
  }

  names(): Set<string> {
    return new Set(this.all.flatMap(({ entries }) => [...entries.keys()]));
  }

  /** Whether a source says something of a policy. */
  concern(name: string): boolean {
    return this.all.some(({ entries }) => entries.has(name));
  }

  /** The options of the code, with those of each source over them, `instead` in place of what one says now. */
  over(name: string, code: Options, instead?: { layer: SourceLayer; entries: Entries }): Options {
    const merged = { ...code };
    for (const layer of this.all) {
      const entries = layer === instead?.layer ? instead.entries : layer.entries;
      Object.assign(merged, entries.get(name));
    }
    return merged;
  }

  /** Where a policy stands, for messages: in the highest source that says something of it, or of one of its fields. */
  where(name: string, field?: string): string | undefined {
    const saying = this.all.filter(({ entries }) => entries.has(name));
    const layer =
      field === undefined
        ? saying.at(-1)
        : (saying.findLast(({ entries }) => Object.hasOwn(entries.get(name)!, field)) ?? saying.at(-1));
    return layer && whereIn(layer, name, field);
  }
}

export function whereIn(layer: SourceLayer, name: string, field?: string): string {
  return layer.opened?.where?.(name, field) ?? layer.name;
}

/** Whether options say how much may be done in which time: without that nothing can be counted. */
export function isComplete({ limit, window }: Options): boolean {
  return limit !== undefined && window !== undefined;
}

/** The fields in which two options differ. */
export function changedFields(before: Options = {}, after: Options = {}): (keyof PolicyOptions)[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof PolicyOptions>;
  return [...fields].filter((field) => !isDeepStrictEqual(before[field], after[field]));
}

export function withoutFields(options: Options, fields: readonly string[]): Options {
  return Object.fromEntries(Object.entries(options).filter(([field]) => !fields.includes(field)));
}
