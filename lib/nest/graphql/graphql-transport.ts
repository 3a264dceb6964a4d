import type { ExecutionContext } from '@nestjs/common';
import type { Clock } from '../../core/clock.js';
import { holdUntil } from '../../core/hold-until.js';
import { andThen, type MaybePromise } from '../../core/maybe-promise.js';
import type { Verdict } from '../../core/verdict.js';
import type { CallSources } from '../call-sources.js';
import type { CallTransport } from '../call-transport.js';
import { deniedMessage } from '../denied-message.js';
import { rawResponse } from '../http/http-call.js';
import type { AnsweredCall, HttpTransport } from '../http/http-transport.js';
import { lazyPeer } from '../peer.js';
import type { RateLimitException } from '../rate-limit-exceptions.js';
import { GraphqlCall } from './graphql-call.js';

/** What resolvers' calls need beside themselves. */
export interface GraphqlTransportParts {
  readonly sources: CallSources;
  readonly clock: Clock;
  /** Writes the headers, and holds a call, where it has a response. */
  readonly http: HttpTransport;
}

/** As much of `graphql` as matters here. */
interface GraphqlPeer {
  readonly GraphQLError: new (
    message: string,
    options: { extensions: object; originalError: Error },
  ) => Error;
}

const graphql = lazyPeer<GraphqlPeer>(() => import('graphql'));

/** Resolvers of queries, mutations and subscriptions, on any server of `@nestjs/graphql`. */
export class GraphqlTransport implements CallTransport<GraphqlCall> {
  /** Of what resolvers throw Nest logs everything but its own exceptions, each with a stack. */
  readonly deniesInFilter = true;
  readonly #parts: GraphqlTransportParts;

  constructor(parts: GraphqlTransportParts) {
    this.#parts = parts;
  }

  callOf(context: ExecutionContext, methodName: string): GraphqlCall {
    return new GraphqlCall(context, methodName, this.#parts.sources);
  }

  tell(call: GraphqlCall, verdicts: readonly Verdict[]): void {
    if (isAnswered(call) && !rawResponse(call.response).headersSent) this.#parts.http.tell(call, verdicts);
  }

  hold(call: GraphqlCall, delayMs: number): Promise<void> {
    const { clock, http } = this.#parts;
    return isAnswered(call) ? http.hold(call, delayMs) : holdUntil(clock, clock.now() + delayMs);
  }

  denial(exception: RateLimitException): MaybePromise<Error> {
    const { message, ...extensions } = deniedMessage(exception);
    return andThen(
      graphql(),
      ({ GraphQLError }) => new GraphQLError(message, { extensions, originalError: exception }),
    );
  }
}

/** What comes over a socket has no response. */
function isAnswered(call: GraphqlCall): call is GraphqlCall & AnsweredCall {
  return call.response !== undefined;
}
