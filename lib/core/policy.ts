import type { Algorithm, Quota } from './algorithm.js';
import type { CallContext } from './call-context.js';
import type { Duration } from './duration.js';

/** The built-in algorithms. */
export type AlgorithmName =
  'sliding-window-counter' | 'sliding-window-log' | 'fixed-window' | 'token-bucket' | 'leaky-bucket' | 'gcra';

/** What a subject is made of. A function's own text becomes `key:…`. */
export type KeyPart =
  | 'ip'
  | 'user'
  | 'handler'
  | 'route'
  | 'global'
  | `header:${string}`
  | ((call: CallContext) => string | undefined | Promise<string | undefined>);

/** How a call that a policy counted ended. */
export interface CallOutcome {
  readonly result?: unknown;
  readonly error?: unknown;
  /** HTTP only: the status that was sent. */
  readonly statusCode?: number;
}

/** What to do while the store can't be reached. */
export type OnUnavailable = 'fallback' | 'allow' | 'deny' | 'throw';

/** A policy as people write it. Numbers may be given as text, as environment variables are. */
export interface PolicyOptions {
  /** Inline policies: a stable name of your own. */
  name?: string;
  /** Whole requests a window, ≥ 0; 0 admits nothing. */
  limit: number;
  /** 1 ms or more. */
  window: Duration;
  /** A built-in's name, or an algorithm of your own. Default `sliding-window-counter`. */
  algorithm?: AlgorithmName | Algorithm;
  /**
   * Token bucket, gcra: how much may come at once; default `limit`. Leaky bucket: how much may be in the bucket,
   * what leaves now included; default min(`limit`, what leaves in 1 s), at least 1.
   */
  burst?: number;
  /** Leaky bucket: a call that would be held longer is denied. */
  maxDelay?: Duration;
  /** One subject, of one or several parts. Default `ip` on handlers, `global` elsewhere. */
  key?: KeyPart | KeyPart[];
  /** Whole units ≥ 1 that a call takes. Default 1. */
  cost?: number | ((call: CallContext) => number | Promise<number>);
  /** After a denial the subject stays denied this long. */
  block?: Duration;
  /** `shadow`: counted and reported, never denied. */
  mode?: 'enforce' | 'shadow';
  /** `interceptor` is after every guard; default there when the key has `user`. */
  enforceAt?: 'guard' | 'interceptor';
  /** Asked when the call has ended; what it rejects is given back. */
  countIf?: (outcome: CallOutcome) => boolean;
  skip?: (call: CallContext) => boolean | Promise<boolean>;
  /** Default `fallback`; on a driver without a fallback that means `throw`. */
  onUnavailable?: OnUnavailable;
}

/** What changes of a policy: a field that is `undefined` is taken back, and what is below it holds. */
export type PolicyPatch = { [Field in keyof PolicyOptions]?: PolicyOptions[Field] | undefined };

/** A policy with every option completed and checked. Immutable: a change makes a new one. */
export interface Policy extends Quota {
  readonly name: string;
  readonly algorithm: string;
  /** The algorithm itself. */
  readonly arithmetic: Algorithm;
  /** `undefined`: the default of the place where the policy is used. */
  readonly key: readonly KeyPart[] | undefined;
  readonly cost: number | ((call: CallContext) => number | Promise<number>);
  /** 0: a denial starts no block. */
  readonly blockMs: number;
  readonly mode: 'enforce' | 'shadow';
  readonly enforceAt: 'guard' | 'interceptor';
  readonly countIf: PolicyOptions['countIf'];
  readonly skip: PolicyOptions['skip'];
  readonly onUnavailable: OnUnavailable;
  /** The options it was made from, for patches. */
  readonly options: Readonly<PolicyOptions>;
}
