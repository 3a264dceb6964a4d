import { rateLimitMetadata, type RateLimitUse } from '../rate-limit-metadata.js';

/**
 * Limits a handler, or every handler of a class. A method's decorator replaces its class's; global policies stay on
 * unless they are skipped. Without an argument: the policy `default`.
 */
export function RateLimit(...policies: RateLimitUse[]): ClassDecorator & MethodDecorator {
  const uses = policies.length === 0 ? ['default'] : policies;
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor) => {
    rateLimitMetadata.addUses((descriptor?.value as object | undefined) ?? target, uses);
  };
}
