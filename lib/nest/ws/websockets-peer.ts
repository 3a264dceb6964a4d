import { lazyPeer } from '../peer.js';

/** As much of `@nestjs/websockets` as matters here. */
interface WebSocketsPeer {
  readonly WsException: new (error: object) => Error;
  readonly BaseWsExceptionFilter: { readonly prototype: { readonly emitMessage?: unknown } };
}

export const websockets = lazyPeer<WebSocketsPeer>(() => import('@nestjs/websockets'));

/** Whether exceptions reach clients of `ws`: Nest 12 sends them, Nest 11 calls the socket's own `emit()`. */
export function sendsToSockets({ BaseWsExceptionFilter }: WebSocketsPeer): boolean {
  return BaseWsExceptionFilter.prototype.emitMessage !== undefined;
}

/** Nest 12 came with both. */
export async function gatewaysGetGlobalGuards(): Promise<boolean> {
  return sendsToSockets(await websockets());
}
