import { status, type ServiceError } from '@grpc/grpc-js';

/** That a service has denied a call. */
export interface Denial {
  readonly message: string;
  /** In milliseconds; `undefined` where waiting does not help, or the service doesn't say. */
  readonly retryAfterMs: number | undefined;
}

/** The denial in what a call to a service failed with; `undefined` where it failed of something else. */
export function denialIn(error: unknown): Denial | undefined {
  return denialOfMessage(error) ?? denialOfGrpc(error);
}

/** Over TCP, Redis, NATS and so on: what the service's RpcException holds, as plain data. */
function denialOfMessage(error: unknown): Denial | undefined {
  const { code, message, retryAfterMs } = (error ?? {}) as {
    code?: unknown;
    message: string;
    retryAfterMs: number | null;
  };
  if (code !== 'TOO_MANY_REQUESTS') return undefined;
  return { message, retryAfterMs: retryAfterMs ?? undefined };
}

/** Over gRPC: a status, and the time in its metadata. */
function denialOfGrpc(error: unknown): Denial | undefined {
  const { code, details, metadata } = (error ?? {}) as Partial<ServiceError>;
  if (code !== status.RESOURCE_EXHAUSTED) return undefined;
  const [retryAfterMs] = metadata?.get('retry-after-ms') ?? [];
  return {
    message: details ?? 'Too many requests',
    retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs),
  };
}
