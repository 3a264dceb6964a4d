import { once } from 'node:events';
import type { INestApplication, WebSocketAdapter } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';

/** What a gateway has sent. */
export interface Sent {
  readonly event: string;
  readonly data: unknown;
}

/** A client of either library. */
export interface WsClient {
  send(event: string, data?: unknown): void;
  /** What comes next. */
  next(): Promise<Sent>;
  isOpen(): boolean;
  close(): void;
}

interface WsKind {
  readonly name: string;
  readonly adapter: (app: INestApplication) => WebSocketAdapter;
  readonly connect: (port: number, headers?: Record<string, string>) => Promise<WsClient>;
}

/** Each of Nest's adapters, and a client for it. */
export const WS_KINDS: readonly WsKind[] = [
  {
    name: 'socket.io',
    adapter: (app) => new IoAdapter(app),
    async connect(port, headers = {}) {
      const socket = io(`http://127.0.0.1:${port}`, {
        extraHeaders: headers,
        transports: ['websocket'],
        forceNew: true,
        reconnection: false,
      });
      const inbox = new Inbox();
      socket.onAny((event: string, data: unknown) => inbox.put({ event, data }));
      await new Promise<void>((connected, failed) => {
        socket.once('connect', connected);
        socket.once('connect_error', failed);
      });
      return {
        send: (event, data) => void socket.emit(event, data),
        next: () => inbox.take(),
        isOpen: () => socket.connected,
        close: () => void socket.disconnect(),
      };
    },
  },
  {
    name: 'ws',
    adapter: (app) => new WsAdapter(app),
    async connect(port, headers = {}) {
      const socket = new WebSocket(`ws://127.0.0.1:${port}`, { headers });
      const inbox = new Inbox();
      socket.on('message', (text: Buffer) => inbox.put(JSON.parse(text.toString()) as Sent));
      await once(socket, 'open');
      return {
        send: (event, data) => socket.send(JSON.stringify({ event, data })),
        next: () => inbox.take(),
        isOpen: () => socket.readyState === WebSocket.OPEN,
        close: () => socket.close(),
      };
    },
  },
];

/** Keeps what has come until it is asked for. */
class Inbox {
  readonly #sent: Sent[] = [];
  readonly #takers: ((sent: Sent) => void)[] = [];

  put(sent: Sent): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#sent.push(sent);
    else taker(sent);
  }

  take(): Promise<Sent> {
    const sent = this.#sent.shift();
    return sent === undefined ? new Promise((taker) => this.#takers.push(taker)) : Promise.resolve(sent);
  }
}
