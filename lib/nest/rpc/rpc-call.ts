import type { ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../core/call-context.js';
import type { CallSources } from '../call-sources.js';
import type { Line } from '../hold-while-connected.js';
import { NEST_METADATA } from '../nest-metadata.js';

/** What the contexts of Nest's transporters have, as far as it matters here. */
interface MessageContext {
  /** TCP: the framed socket; its `netSocket` is Node's. */
  getSocketRef?(): {
    readonly netSocket?: Line & { readonly remoteAddress?: string; readonly destroyed: boolean };
  };
}

/** A message of a transporter. Only TCP's tells who has sent it; none has headers. */
export class RpcCall implements CallContext {
  readonly transport = 'rpc';
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  /** The message's context; its body is the first of `args`. */
  readonly request: MessageContext;
  readonly #handler: Function;
  readonly #sources: CallSources;
  readonly #addressMissing: () => void;

  constructor(
    context: ExecutionContext,
    methodName: string,
    sources: CallSources,
    addressMissing: (kind: string) => void,
  ) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = this.args[1] as MessageContext;
    this.#handler = context.getHandler();
    this.#sources = sources;
    this.#addressMissing = () => addressMissing(this.request?.constructor.name ?? 'unknown');
  }

  /** The other end of the connection, where the transporter has one. */
  get socket(): ReturnType<NonNullable<MessageContext['getSocketRef']>> | undefined {
    return this.request?.getSocketRef?.();
  }

  get ip(): string | undefined {
    const address = this.socket?.netSocket?.remoteAddress;
    const ip = address === undefined ? undefined : this.#sources.socketAddress(address, noHeader);
    if (ip === undefined) this.#addressMissing();
    return ip;
  }

  get user(): string | undefined {
    return this.#sources.userOf(this);
  }

  /** The pattern of the handler, never the channel that a wildcard matched. */
  get route(): string | undefined {
    const patterns = Reflect.getMetadata(NEST_METADATA.pattern, this.#handler) as unknown[] | undefined;
    return patterns
      ?.map((pattern) => (typeof pattern === 'string' ? pattern : JSON.stringify(pattern)))
      .join('|');
  }

  header(): undefined {
    return undefined;
  }
}

const noHeader = (): undefined => undefined;
