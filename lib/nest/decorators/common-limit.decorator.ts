import { Inject, Optional } from '@nestjs/common';
import { enforcementSuspended } from '../../core/enforcement.js';
import { RateLimitConfigError, RateLimitError } from '../../core/errors.js';
import type { PolicyOptions } from '../../core/policy.js';
import type { MethodLimits } from '../method-limits.js';
import { rateLimitMetadata, type CommonLimitOptions, type LimitedMethod } from '../rate-limit-metadata.js';
import { completeCommonLimit } from '../rate-limit-use.js';
import { NEST_METADATA } from '../nest-metadata.js';
import { METHOD_LIMITS } from '../tokens.js';

type Method = (this: object, ...args: unknown[]) => unknown;

/**
 * Limits any method of any provider or controller, whoever calls it. Without a policy: `default`. The method
 * returns a promise from then on.
 */
export function CommonLimit(
  policy?: string | PolicyOptions,
  options: CommonLimitOptions = {},
): MethodDecorator {
  return (target, key, descriptor) => {
    const original = descriptor.value as Method | undefined;
    const methodName = String(key);
    if (typeof target === 'function' || typeof original !== 'function') {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_OPTION',
        path: `@CommonLimit() on ${methodName}`,
        expected: 'a method of instances: a static one or an accessor belongs to no application',
        received: original,
      });
    }
    const limited: LimitedMethod = {
      methodName,
      use: policy ?? 'default',
      options: completeCommonLimit(options, `@CommonLimit() on ${methodName}`),
      ordinal: rateLimitMetadata.limitedMethodsOf(original).length,
    };
    const wrapper = wrap(original, limited);
    rateLimitMetadata.addLimitedMethod(wrapper, limited);
    descriptor.value = wrapper as typeof descriptor.value;
    injectLimits(target);
  };
}

function wrap(original: Method, limited: LimitedMethod): Method {
  const wrapper: Method = async function (...args) {
    const limits = (this as { [METHOD_LIMITS]?: MethodLimits } | undefined)?.[METHOD_LIMITS];
    if (limits !== undefined) return limits.run(limited, this, args, () => original.apply(this, args));
    if (enforcementSuspended()) return original.apply(this, args);
    throw new RateLimitError(
      'RL_NOT_BOUND',
      `${limited.methodName}() is limited, but its object was not made by Nest with RateLimitModule imported; ` +
        "in a unit test call disableRateLimits() from 'nestjs-distlimit/testing'",
    );
  };
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, property, { value: original[property], configurable: true });
  }
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), wrapper);
  }
  return wrapper;
}

/** Has Nest put the application's limits on every instance, whatever its scope. Once a class is enough. */
function injectLimits(target: object): void {
  const properties: unknown = Reflect.getMetadata(NEST_METADATA.properties, target.constructor);
  const known =
    Array.isArray(properties) && properties.some((p: { key: unknown }) => p.key === METHOD_LIMITS);
  if (known) return;
  Inject(METHOD_LIMITS)(target, METHOD_LIMITS);
  Optional()(target, METHOD_LIMITS);
}
