import type { RateLimitModuleOptions } from 'nestjs-distlimit';

export interface Counting {
  /** Left out: each instance of a service counts in its memory. */
  readonly redis: string | undefined;
  readonly prefix?: string;
}

/** With Redis all instances of a service count together. The two services may share it: their policies have names. */
export function countedIn({ redis, prefix = 'sample-03' }: Counting): RateLimitModuleOptions {
  return redis === undefined ? {} : { redis, prefix, hybrid: { expectedInstances: 2 } };
}
