import type { IncomingMessage } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../core/call-context.js';
import type { CallSources } from '../call-sources.js';
import type { Line } from '../hold-while-connected.js';
import { headerOf } from '../header-of.js';

/** What the sockets of socket.io and `ws` have, as far as it matters here. */
export interface WsClient extends Line {
  /** socket.io: the request that opened the connection, and whether it is open. */
  readonly request?: IncomingMessage;
  readonly connected?: boolean;
  readonly data?: object;
  readonly handshake?: object;
  /** `ws`: 1 while it is open. */
  readonly readyState?: number;
  send?(text: string): void;
}

/** One message of a socket. Its address and headers are those of the request that opened the connection. */
export class WsCall implements CallContext {
  readonly transport = 'websocket';
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly request: WsClient;
  /** The event. */
  readonly route: string;
  /** The request that opened the connection. */
  readonly upgrade: IncomingMessage | undefined;
  readonly #sources: CallSources;

  constructor(
    context: ExecutionContext,
    methodName: string,
    upgradeOf: (client: WsClient) => IncomingMessage | undefined,
    sources: CallSources,
  ) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = this.args[0] as WsClient;
    const pattern: unknown = this.args.at(-1);
    this.route = typeof pattern === 'string' ? pattern : JSON.stringify(pattern);
    this.upgrade = upgradeOf(this.request) ?? this.request.request;
    this.#sources = sources;
  }

  get ip(): string | undefined {
    return this.#sources.socketAddress(this.upgrade?.socket.remoteAddress, this.header);
  }

  get user(): string | undefined {
    return this.#sources.userOf(this);
  }

  /** Bound to this call: key functions take their argument apart. */
  readonly header = (name: string): string | undefined => headerOf(this.upgrade?.headers, name);
}
