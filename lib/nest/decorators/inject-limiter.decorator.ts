import { Inject } from '@nestjs/common';
import { limiterToken } from '../tokens.js';

const requested = new Set<string>();

/** Injects a `Limiter` bound to one policy. An unknown name fails at start-up. */
export function InjectLimiter(name: string): ParameterDecorator & PropertyDecorator {
  requested.add(name);
  return Inject(limiterToken(name));
}

/** The names that decorators have asked for so far, in any application of this process. */
export function requestedLimiters(): readonly string[] {
  return [...requested];
}
