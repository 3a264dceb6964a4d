import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../core/call-context.js';
import type { CallSources } from '../call-sources.js';
import type { Line } from '../hold-while-connected.js';

/** What the calls of `@grpc/grpc-js` have, as far as it matters here. */
export interface GrpcServerCall extends Line {
  readonly metadata: { get(name: string): readonly (string | Buffer)[] };
  readonly cancelled: boolean;
  getPeer(): string;
  getPath(): string;
  emit(event: 'error', status: unknown): boolean;
}

/** The call among a handler's arguments: behind request and metadata, or the first where a stream is passed through. */
export function grpcCallIn(args: readonly unknown[]): GrpcServerCall | undefined {
  return args.find(
    (arg): arg is GrpcServerCall =>
      typeof (arg as Partial<GrpcServerCall> | undefined)?.getPeer === 'function',
  );
}

/** The call of a handler that answers it by itself: that of `@GrpcStreamCall()`, which gets nothing before the call. */
export function selfAnsweredCallIn(args: readonly unknown[]): GrpcServerCall | undefined {
  return grpcCallIn(args.slice(0, 1));
}

/** A gRPC call. Its headers are its metadata. */
export class GrpcCall implements CallContext {
  readonly transport = 'rpc';
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly request: GrpcServerCall;
  readonly #sources: CallSources;

  constructor(context: ExecutionContext, methodName: string, request: GrpcServerCall, sources: CallSources) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = request;
    this.#sources = sources;
  }

  get ip(): string | undefined {
    return this.#sources.socketAddress(peerAddress(this.request.getPeer()), this.header);
  }

  get user(): string | undefined {
    return this.#sources.userOf(this);
  }

  get route(): string {
    return this.request.getPath();
  }

  /** Bound to this call: key functions take their argument apart. */
  readonly header = (name: string): string | undefined => {
    const values = this.request.metadata.get(name).filter((value) => typeof value === 'string');
    return values.length === 0 ? undefined : values.join(', ');
  };
}

/** The peer without its port: `127.0.0.1:50051`, and `::1:50051` without brackets. Of a local socket it is not known. */
function peerAddress(peer: string): string | undefined {
  const end = peer.lastIndexOf(':');
  return end < 0 ? undefined : peer.slice(0, end);
}
