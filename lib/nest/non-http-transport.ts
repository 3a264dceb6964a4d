import type { ExecutionContext } from '@nestjs/common';
import type { Clock } from '../core/clock.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { holdUntil } from '../core/hold-until.js';
import type { CallTransport } from './call-transport.js';
import { NonHttpCall } from './non-http-call.js';

/** Messages of any kind: they carry no address and get no headers, and a caller that leaves is not noticed. */
export class NonHttpTransport implements CallTransport<NonHttpCall> {
  readonly #clock: Clock;
  readonly #report: DiagnosticSink;

  constructor(clock: Clock, report: DiagnosticSink) {
    this.#clock = clock;
    this.#report = report;
  }

  callOf(context: ExecutionContext, methodName: string): NonHttpCall {
    const type = context.getType<string>();
    this.#report({
      code: 'RL_NOT_AVAILABLE',
      message:
        `this version does not know who calls over '${type}': ` +
        'address and user policies count all such calls together',
    });
    return new NonHttpCall(context, methodName);
  }

  tell(): void {}

  hold(_call: NonHttpCall, delayMs: number): Promise<void> {
    return holdUntil(this.#clock, this.#clock.now() + delayMs);
  }
}
