import type { DiagnosticSink } from './diagnostics.js';
import type { MaybePromise } from './maybe-promise.js';
import type { PolicyOptions } from './policy.js';
import type { RedisSource } from './redis-address.js';

/** Options by the names of policies. What a policy leaves out is that of the layers below: see `docs/policy-sources.md`. */
export type PolicySet = Readonly<Record<string, Readonly<Partial<PolicyOptions>>>>;

/** What a source is given when it is opened. */
export interface PolicySourceContext {
  /**
   * Tells what holds from now on: the whole set each time. A set that can't be is refused and reported, and the last
   * good one stays. Never throws. What comes after `close()` is not looked at.
   */
  changed(policies: PolicySet): void;
  /** Where to tell what operators should know. Each report is written: tell what is the same only once. */
  readonly report: DiagnosticSink;
  /** The module's `redis`. */
  readonly redis: RedisSource | undefined;
  /** The module's `prefix`, completed. */
  readonly prefix: string;
}

/** Where policies come from, besides the code: a file, Redis, a configuration centre. It can be opened several times. */
export interface PolicySource {
  /** For messages. */
  readonly name: string;
  /**
   * What is refused together where something is wrong: the `set` (the default; at start-up that is an error), or each
   * `policy` for itself (at start-up a warning).
   */
  readonly unit?: 'set' | 'policy';
  /** Called once for each application, before it knows any policy. A rejection fails the start. */
  open(context: PolicySourceContext): MaybePromise<OpenPolicySource>;
}

/** A source at work for one application. */
export interface OpenPolicySource {
  /** What holds now. */
  readonly policies: PolicySet;
  /**
   * Stores a change for the whole fleet: fields of one policy, those that are `undefined` to be removed. Resolves when it
   * is stored and `changed` was told of it. Left out: the source can't.
   */
  update?(policy: string, patch: Readonly<Partial<PolicyOptions>>): Promise<void>;
  /** Where a policy of the latest set stands, or one of its fields, for messages: a file with line and column. */
  where?(policy: string, field?: string): string | undefined;
  /** Frees what was opened. */
  close?(): MaybePromise<void>;
}
