import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { strictestVerdict } from '../../core/verdict.js';
import { invocationOfParameter } from '../invocation.js';
import { isEnforced } from '../verdicts.js';

/**
 * The strictest verdict of this call; `undefined` where no policy was checked. One in shadow mode does not count.
 */
export const RateLimitVerdict = createParamDecorator((_: unknown, context: ExecutionContext) =>
  strictestVerdict(invocationOfParameter(context)?.verdicts.filter(isEnforced) ?? []),
);
