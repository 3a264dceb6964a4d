import type { CallContext } from '../core/call-context.js';
import type { KeyPart, PolicyOptions } from '../core/policy.js';
import type { Verdict } from '../core/verdict.js';

/** A named policy with something of this place's own. */
export interface PolicyReference {
  policy: string;
  /** Whole units ≥ 1, in place of the policy's cost. */
  cost?: number | ((call: CallContext) => number | Promise<number>);
  /** In place of the policy's key. */
  key?: KeyPart | KeyPart[];
  /** Beside the policy's own. */
  skip?: (call: CallContext) => boolean | Promise<boolean>;
}

/** What `@RateLimit()` takes: a name, a policy of this handler's own, or a named one with changes. */
export type RateLimitUse = string | PolicyOptions | PolicyReference;

/** What `@CommonLimit()` takes beside the policy. */
// The arguments are the method's own: each function here may name as many of them as it uses.
export interface CommonLimitOptions {
  /** The subject, from the method's own arguments. */
  key?: (...args: any[]) => string | undefined;
  /** Whole units ≥ 1. */
  cost?: number | ((...args: any[]) => number);
  /**
   * `throw` a `RateLimitExceededException` (the default), `skip` the call and resolve to `undefined` with a warning,
   * `wait` in arrival order, or a function whose result takes the place of the method's.
   */
  onLimited?: 'throw' | 'skip' | 'wait' | ((verdict: Verdict, ...args: any[]) => unknown);
  /** With `wait`: milliseconds at most, then as `throw`. Default 30,000. */
  maxWaitMs?: number;
}

/** One `@CommonLimit()` on one method: the same for every application that uses the class. */
export interface LimitedMethod {
  readonly methodName: string;
  readonly use: RateLimitUse;
  readonly options: CommonLimitOptions;
  /** 0 for the decorator nearest to the method. */
  readonly ordinal: number;
}

type Target = object;

const USES = 'nestjs-distlimit:uses';
const SKIPS = 'nestjs-distlimit:skips';
const LIMITED = 'nestjs-distlimit:limited-methods';

/** The one place that reads and writes this library's metadata. */
export const rateLimitMetadata = {
  isOwn(key: unknown): boolean {
    return key === USES || key === SKIPS || key === LIMITED;
  },
  /** Several decorators on one target add up, in the order in which they are read. */
  addUses(target: Target, uses: readonly RateLimitUse[]): void {
    const own = (Reflect.getOwnMetadata(USES, target) as readonly RateLimitUse[] | undefined) ?? [];
    Reflect.defineMetadata(USES, [...uses, ...own], target);
  },
  usesOf(target: Target): readonly RateLimitUse[] | undefined {
    return Reflect.getMetadata(USES, target) as readonly RateLimitUse[] | undefined;
  },
  /** No names: everything. */
  addSkips(target: Target, names: readonly string[]): void {
    const own = Reflect.getOwnMetadata(SKIPS, target) as readonly string[] | 'all' | undefined;
    const all = names.length === 0 || own === 'all';
    Reflect.defineMetadata(SKIPS, all ? 'all' : [...(own ?? []), ...names], target);
  },
  skipsOf(target: Target): readonly string[] | 'all' {
    return (Reflect.getMetadata(SKIPS, target) as readonly string[] | 'all' | undefined) ?? [];
  },
  addLimitedMethod(method: Target, limited: LimitedMethod): void {
    Reflect.defineMetadata(LIMITED, [...rateLimitMetadata.limitedMethodsOf(method), limited], method);
  },
  limitedMethodsOf(method: Target): readonly LimitedMethod[] {
    return (Reflect.getOwnMetadata(LIMITED, method) as readonly LimitedMethod[] | undefined) ?? [];
  },
};
