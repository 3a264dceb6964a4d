import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { finalize, tap, type Observable } from 'rxjs';
import { Enforcer } from './enforcer.js';

/**
 * Decides what needs the user or another guard's work, and sees how calls end. Bound globally where any policy on a
 * handler needs it.
 */
@Injectable()
export class RateLimitInterceptor implements NestInterceptor {
  readonly #enforcer: Enforcer;

  /** @internal */
  constructor(enforcer: Enforcer) {
    this.#enforcer = enforcer;
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const invocation = await this.#enforcer.intercept(context);
    if (invocation === undefined) return next.handle();
    return next.handle().pipe(
      tap({
        next: (result) => {
          invocation.ended = { result };
        },
        error: (error: unknown) => {
          invocation.ended = { error };
        },
      }),
      finalize(() => this.#enforcer.ended(invocation)),
    );
  }
}
