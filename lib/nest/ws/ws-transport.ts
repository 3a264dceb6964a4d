import type { ExecutionContext } from '@nestjs/common';
import type { Clock } from '../../core/clock.js';
import { andThen, type MaybePromise } from '../../core/maybe-promise.js';
import type { CallSources } from '../call-sources.js';
import type { CallTransport } from '../call-transport.js';
import { deniedMessage } from '../denied-message.js';
import { holdWhileConnected } from '../hold-while-connected.js';
import type { RateLimitException } from '../rate-limit-exceptions.js';
import type { UpgradeRequests } from './upgrade-requests.js';
import { sendsToSockets, websockets } from './websockets-peer.js';
import { WsCall, type WsClient } from './ws-call.js';

/** What messages of sockets need beside themselves. */
export interface WsTransportParts {
  readonly sources: CallSources;
  readonly upgrades: UpgradeRequests;
  readonly clock: Clock;
}

const OPEN = 1;

/** Gateways on socket.io and on `ws`. A denied message leaves the connection open. */
export class WsTransport implements CallTransport<WsCall> {
  readonly #parts: WsTransportParts;
  readonly #denials = new WeakSet<object>();
  readonly #forwarding = new WeakSet<WsClient>();

  constructor(parts: WsTransportParts) {
    this.#parts = parts;
  }

  callOf(context: ExecutionContext, methodName: string): WsCall {
    const { upgrades, sources } = this.#parts;
    return new WsCall(context, methodName, (client) => upgrades.of(client), sources);
  }

  tell(): void {}

  async hold({ request: client }: WsCall, delayMs: number): Promise<void> {
    const isSocketIo = client.connected !== undefined;
    const hasLeft = isSocketIo ? !client.connected : client.readyState !== OPEN;
    await holdWhileConnected(
      this.#parts.clock,
      delayMs,
      client,
      isSocketIo ? 'disconnect' : 'close',
      hasLeft,
    ).catch(async () => {
      const { WsException } = await websockets();
      throw new WsException({ code: 'CLIENT_CLOSED' });
    });
  }

  denial(exception: RateLimitException, [client]: readonly unknown[]): MaybePromise<Error> {
    return andThen(websockets(), (peer) => {
      const message = deniedMessage(exception);
      if (!sendsToSockets(peer)) {
        this.#denials.add(message);
        this.#forward(client as WsClient & Emitting);
      }
      return Object.assign(new peer.WsException(message), { cause: exception });
    });
  }

  /** Nest 11 sends exceptions with `emit()`, which in a socket of `ws` only tells listeners on this side. */
  #forward(client: WsClient & Emitting): void {
    if (client.readyState === undefined || this.#forwarding.has(client)) return;
    this.#forwarding.add(client);
    client.on('exception', (data) => {
      if (this.#denials.has(data)) client.send?.(JSON.stringify({ event: 'exception', data }));
    });
  }
}

interface Emitting {
  on(event: string, listener: (data: object) => void): unknown;
}
