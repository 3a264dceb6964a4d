import type { ExecutionContext } from '@nestjs/common';
import type { Clock } from '../core/clock.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { holdUntil } from '../core/hold-until.js';
import type { CallTransport } from './call-transport.js';
import { UnknownCall } from './unknown-call.js';

/** Calls of any other kind: they carry no address and get no headers, and a caller that leaves is not noticed. */
export class UnknownTransport implements CallTransport<UnknownCall> {
  readonly #clock: Clock;
  readonly #report: DiagnosticSink;

  constructor(clock: Clock, report: DiagnosticSink) {
    this.#clock = clock;
    this.#report = report;
  }

  callOf(context: ExecutionContext, methodName: string): UnknownCall {
    const type = context.getType<string>();
    this.#report({
      code: 'RL_NOT_AVAILABLE',
      message:
        `this version does not know who calls over '${type}': ` +
        'address and user policies count all such calls together',
    });
    return new UnknownCall(context, methodName);
  }

  tell(): void {}

  hold(_call: UnknownCall, delayMs: number): Promise<void> {
    return holdUntil(this.#clock, this.#clock.now() + delayMs);
  }
}
