import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { strictestVerdict } from '../../core/verdict.js';
import { invocationOf } from '../invocation.js';
import { isEnforced } from '../verdicts.js';

/**
 * The strictest verdict of this HTTP call; `undefined` where no policy was checked. One in shadow mode does not count.
 */
export const RateLimitVerdict = createParamDecorator((_: unknown, context: ExecutionContext) =>
  strictestVerdict(invocationOf(context)?.verdicts.filter(isEnforced) ?? []),
);
