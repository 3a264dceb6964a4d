import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import type { MaybePromise } from '../core/maybe-promise.js';
import type { Verdict } from '../core/verdict.js';
import type { RateLimitException } from './rate-limit-exceptions.js';

/** What decisions need of a kind of call. The enforcer knows one for each `context.getType()`. */
export interface CallTransport<Call extends CallContext = CallContext> {
  /** What is known of the call. */
  callOf(context: ExecutionContext, methodName: string): Call;
  /** Tells the caller what was decided so far: headers. */
  tell(call: Call, verdicts: readonly Verdict[]): void;
  /**
   * Holds the call for so long.
   * @throws where the caller has left meanwhile
   */
  hold(call: Call, delayMs: number): Promise<void>;
  /** The denial as this kind's callers and filters know it; without this it is the exception itself. */
  denial?(exception: RateLimitException, args: readonly unknown[]): MaybePromise<Error>;
  /** Whether the exception is thrown as it is, and {@link denial} made of it in the filter. */
  readonly deniesInFilter?: boolean;
  /**
   * What sends an error to the caller, where nobody else would: Nest has no answer for what is thrown there, and it would
   * end the process. `undefined` where Nest has one.
   */
  answerer?(args: readonly unknown[]): ((error: unknown) => Promise<void>) | undefined;
  /** Says when the call is over, with the status that was sent. Without this it is over when its handler is. */
  onEnd?(call: Call, ended: (statusCode: number | undefined) => void): void;
}
