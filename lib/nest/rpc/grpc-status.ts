import { andThen, type MaybePromise } from '../../core/maybe-promise.js';
import type { DeniedMessage } from '../denied-message.js';
import { lazyPeer } from '../peer.js';

/** As much of `@grpc/grpc-js` as matters here. */
interface GrpcPeer {
  readonly Metadata: new () => { set(name: string, value: string): void };
}

const grpc = lazyPeer<GrpcPeer>(() => import('@grpc/grpc-js'));

const STATUS = { TOO_MANY_REQUESTS: 8, SERVICE_UNAVAILABLE: 14 } as const;

/** A denial in gRPC's own terms: RESOURCE_EXHAUSTED or UNAVAILABLE, and the wait in the metadata where there is one. */
export function grpcStatusOf({ code, message, retryAfterMs }: DeniedMessage): MaybePromise<object> {
  return andThen(grpc(), ({ Metadata }) => {
    const metadata = new Metadata();
    if (Number.isFinite(retryAfterMs)) metadata.set('retry-after-ms', String(retryAfterMs));
    return { code: STATUS[code], message, details: message, metadata };
  });
}
