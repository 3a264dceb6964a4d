import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';

const TRANSPORTS: Record<string, CallContext['transport']> = {
  http: 'http',
  ws: 'websocket',
  rpc: 'rpc',
  graphql: 'graphql',
};

/** A call that is not HTTP: it has no address and no headers, so its subject is `global` unless a key function says. */
export class NonHttpCall implements CallContext {
  readonly transport: CallContext['transport'];
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly request: unknown;

  constructor(context: ExecutionContext, methodName: string) {
    this.transport = TRANSPORTS[context.getType<string>()] ?? 'method';
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = this.args[0];
  }

  header(): undefined {
    return undefined;
  }
}
