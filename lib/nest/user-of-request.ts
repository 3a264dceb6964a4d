import type { CallContext } from '../core/call-context.js';
import { textOf } from './call-subject.js';
import { WsCall } from './ws/ws-call.js';

interface Carrier {
  readonly user?: { readonly id?: unknown; readonly sub?: unknown } | null;
}

/**
 * The default of `userOf`: what authentication usually puts on the request, or on the socket, its `data`, its handshake
 * or the request that opened it.
 */
export function userOfRequest(call: CallContext): string | undefined {
  for (const carrier of carriersOf(call)) {
    const user = carrier?.user;
    const text = textOf(user?.id) ?? textOf(user?.sub);
    if (text !== undefined) return text;
  }
  return undefined;
}

function carriersOf(call: CallContext): readonly (Carrier | null | undefined)[] {
  if (!(call instanceof WsCall)) return [call.request as Carrier | null | undefined];
  const { request: client, upgrade } = call;
  return [client, client.data, client.handshake, upgrade as Carrier | undefined];
}
