import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { strictestVerdict } from '../../core/verdict.js';
import { invocationOf } from '../invocation.js';

/** The strictest verdict of this call; `undefined` where no policy was checked. */
export const RateLimitVerdict = createParamDecorator((_: unknown, context: ExecutionContext) =>
  strictestVerdict(invocationOf(context)?.verdicts ?? []),
);
