import type { IncomingMessage } from 'node:http';
import type { ApplicationConfig } from '@nestjs/core';

/** As much of Nest's WebSocket adapters as matters here. */
interface ConnectingAdapter {
  bindClientConnect?(server: unknown, callback: (...args: unknown[]) => void): unknown;
}

/**
 * The request that opened each socket. Those of socket.io hold theirs; the ones of `ws` don't, and only the event of the
 * connection brings it.
 */
export class UpgradeRequests {
  readonly #bySocket = new WeakMap<object, IncomingMessage>();

  of(socket: object): IncomingMessage | undefined {
    return this.#bySocket.get(socket);
  }

  /** Has the adapters that the application will set keep the requests of their connections. */
  watch(config: ApplicationConfig): void {
    const set = config.setIoAdapter.bind(config);
    config.setIoAdapter = (adapter) => {
      this.#watchAdapter(adapter);
      set(adapter);
    };
  }

  #watchAdapter(adapter: ConnectingAdapter): void {
    const bind = adapter.bindClientConnect?.bind(adapter);
    if (bind === undefined) return;
    adapter.bindClientConnect = (server, callback) =>
      bind(server, (...args: unknown[]) => {
        const [socket, request] = args;
        if (typeof request === 'object' && request !== null) {
          this.#bySocket.set(socket as object, request as IncomingMessage);
        }
        callback(...args);
      });
  }
}
