import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';

/** A call of a kind that is not known: it has no address and no headers, so its subject is `global` unless a key function says. */
export class UnknownCall implements CallContext {
  readonly transport = 'method';
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly request: unknown;

  constructor(context: ExecutionContext, methodName: string) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = this.args[0];
  }

  header(): undefined {
    return undefined;
  }
}
