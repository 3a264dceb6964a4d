import { status, type ServiceError } from '@grpc/grpc-js';
import { TimeoutError } from 'rxjs';

/** That a service can't be reached, or says that it can't serve. */
export interface Outage {
  /** In milliseconds; `undefined` where nobody knows. */
  readonly retryAfterMs: number | undefined;
}

/** What Node's sockets say of a service that is not there, or that goes away during a call. */
const NOT_REACHED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]);

/** The outage in what a call to a service failed with; `undefined` where it failed of something else. */
export function outageIn(error: unknown): Outage | undefined {
  if (error instanceof TimeoutError) return { retryAfterMs: undefined };
  return outageOfMessage(error) ?? outageOfGrpc(error);
}

/** Over TCP: an error of the socket, or what a service says whose own limits can't be checked. */
function outageOfMessage(error: unknown): Outage | undefined {
  const { code, message, retryAfterMs } = (error ?? {}) as {
    code?: unknown;
    message?: string;
    retryAfterMs?: number | null;
  };
  if (code === 'SERVICE_UNAVAILABLE') return { retryAfterMs: retryAfterMs ?? undefined };
  // Nest's client fails so, and without a code, for calls that wait for an answer when the connection breaks.
  const isCutOff = error instanceof Error && code === undefined && message === 'Connection closed';
  return NOT_REACHED.has(code) || isCutOff ? { retryAfterMs: undefined } : undefined;
}

/** Over gRPC the client and the service say it with the same status. */
function outageOfGrpc(error: unknown): Outage | undefined {
  const { code, metadata } = (error ?? {}) as Partial<ServiceError>;
  if (code !== status.UNAVAILABLE) return undefined;
  const [retryAfterMs] = metadata?.get('retry-after-ms') ?? [];
  return { retryAfterMs: retryAfterMs === undefined ? undefined : Number(retryAfterMs) };
}
