import { HttpException, type ExecutionContext, type HttpServer } from '@nestjs/common';
import type { Clock } from '../../core/clock.js';
import type { Verdict } from '../../core/verdict.js';
import { retryAfterSeconds, type HeaderWriter } from '../../http/rate-limit-headers.js';
import type { CallSources } from '../call-sources.js';
import type { CallTransport } from '../call-transport.js';
import { holdWhileConnected } from '../hold-while-connected.js';
import { windowMsOf } from '../verdicts.js';
import { HttpCall, rawResponse } from './http-call.js';

/** What HTTP calls need beside their requests. */
export interface HttpTransportParts {
  readonly sources: CallSources;
  readonly writeHeaders: HeaderWriter;
  readonly clock: Clock;
  /** Asked for when it is needed: a testing module has none until its application is made. */
  readonly adapter: () => HttpServer | undefined;
}

/** The status of a call whose client left before it was let go. Nobody sees it but logs. */
const CLIENT_CLOSED_REQUEST = 499;

/** Express and Fastify. */
export class HttpTransport implements CallTransport<HttpCall> {
  readonly #parts: HttpTransportParts;

  constructor(parts: HttpTransportParts) {
    this.#parts = parts;
  }

  callOf(context: ExecutionContext, methodName: string): HttpCall {
    return new HttpCall(context, methodName, this.#parts.sources);
  }

  tell({ response }: HttpCall, verdicts: readonly Verdict[]): void {
    const adapter = this.#parts.adapter();
    if (adapter === undefined) return;
    const set = (name: string, value: string) => void adapter.setHeader?.(response, name, value);
    this.#parts.writeHeaders(set, verdicts, (index) => windowMsOf(verdicts[index]!));
    if (verdicts.every(({ allowed }) => allowed)) return;
    const seconds = retryAfterSeconds(verdicts);
    if (seconds !== undefined) set('Retry-After', String(seconds));
    set('Cache-Control', 'no-store');
  }

  async hold(call: HttpCall, delayMs: number): Promise<void> {
    const response = rawResponse(call.response);
    try {
      await holdWhileConnected(this.#parts.clock, delayMs, response, 'close', response.destroyed);
    } catch {
      throw new HttpException('Client Closed Request', CLIENT_CLOSED_REQUEST);
    }
  }

  /** Over when the response has gone out, or will never go: filters and guards have had their say by then. */
  onEnd(call: HttpCall, ended: (statusCode: number | undefined) => void): void {
    const response = rawResponse(call.response);
    const tell = () => ended(response.headersSent ? response.statusCode : undefined);
    // A client may have left while the guard waited for its key: then `close` has been.
    if (response.destroyed) tell();
    else response.once('close', tell);
  }
}
