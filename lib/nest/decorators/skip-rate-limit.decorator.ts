import { rateLimitMetadata } from '../rate-limit-metadata.js';

/**
 * Takes policies off a handler or a class: those named, or without a name all of them, global ones included. On a
 * class it concerns global policies and the class's own; what a method's own `@RateLimit()` adds stays.
 */
export function SkipRateLimit(...names: string[]): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor) => {
    rateLimitMetadata.addSkips((descriptor?.value as object | undefined) ?? target, names);
  };
}
