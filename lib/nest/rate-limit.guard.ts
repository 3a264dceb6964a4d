import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Enforcer } from './enforcer.js';

/** Decides what can be decided before every other guard. Bound globally unless `registerGuard` is false. */
@Injectable()
export class RateLimitGuard implements CanActivate {
  readonly #enforcer: Enforcer;

  /** @internal */
  constructor(enforcer: Enforcer) {
    this.#enforcer = enforcer;
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.#enforcer.guard(context);
  }
}
