import type { ExecutionContext } from '@nestjs/common';
import type { Clock } from '../../core/clock.js';
import type { DiagnosticSink } from '../../core/diagnostics.js';
import { holdUntil } from '../../core/hold-until.js';
import { andThen, type MaybePromise } from '../../core/maybe-promise.js';
import type { CallSources } from '../call-sources.js';
import type { CallTransport } from '../call-transport.js';
import { deniedMessage } from '../denied-message.js';
import { holdWhileConnected } from '../hold-while-connected.js';
import { lazyPeer } from '../peer.js';
import type { RateLimitException } from '../rate-limit-exceptions.js';
import { GrpcCall, grpcCallIn, selfAnsweredCallIn } from './grpc-call.js';
import { grpcStatusOf } from './grpc-status.js';
import { RpcCall } from './rpc-call.js';

/** What messages need beside themselves. */
export interface RpcTransportParts {
  readonly sources: CallSources;
  readonly clock: Clock;
  readonly report: DiagnosticSink;
}

/** As much of `@nestjs/microservices` as matters here. */
interface MicroservicesPeer {
  readonly RpcException: new (error: object) => Error;
  /** Knows what clients are told of an error, and logs what they are not told. */
  readonly BaseRpcExceptionFilter: new () => {
    catch(error: unknown): { subscribe(observer: { error(told: unknown): void }): unknown };
  };
}

const microservices = lazyPeer<MicroservicesPeer>(() => import('@nestjs/microservices'));

/** Microservices on any transporter. */
export class RpcTransport implements CallTransport<RpcCall | GrpcCall> {
  readonly #parts: RpcTransportParts;

  constructor(parts: RpcTransportParts) {
    this.#parts = parts;
  }

  callOf(context: ExecutionContext, methodName: string): RpcCall | GrpcCall {
    const { sources, report } = this.#parts;
    const call = grpcCallIn(context.getArgs());
    if (call !== undefined) return new GrpcCall(context, methodName, call, sources);
    return new RpcCall(context, methodName, sources, (kind) =>
      report({
        code: 'RL_NO_ADDRESS',
        message: `messages with a ${kind} carry no address: policies by address count them all together`,
      }),
    );
  }

  tell(): void {}

  async hold(call: RpcCall | GrpcCall, delayMs: number): Promise<void> {
    const { clock } = this.#parts;
    try {
      if (call instanceof GrpcCall) {
        const { request } = call;
        await holdWhileConnected(clock, delayMs, request, 'cancelled', request.cancelled);
      } else if (call.socket?.netSocket === undefined) {
        await holdUntil(clock, clock.now() + delayMs);
      } else {
        const { netSocket } = call.socket;
        await holdWhileConnected(clock, delayMs, netSocket, 'close', netSocket.destroyed);
      }
    } catch {
      const { RpcException } = await microservices();
      throw new RpcException({ code: 'CLIENT_CLOSED' });
    }
  }

  denial(exception: RateLimitException, args: readonly unknown[]): MaybePromise<Error> {
    const message = deniedMessage(exception);
    const error = grpcCallIn(args) === undefined ? message : grpcStatusOf(message);
    return andThen(error, (told) =>
      andThen(microservices(), ({ RpcException }) =>
        Object.assign(new RpcException(told), { cause: exception }),
      ),
    );
  }

  answerer(args: readonly unknown[]): ((error: unknown) => Promise<void>) | undefined {
    const call = selfAnsweredCallIn(args);
    if (call === undefined) return undefined;
    return async (thrown) => {
      const { BaseRpcExceptionFilter } = await microservices();
      // The call listens for this, and sends it as its status.
      new BaseRpcExceptionFilter().catch(thrown).subscribe({ error: (told) => call.emit('error', told) });
    };
  }
}
