import type { ExecutionContext } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallContext } from '../../core/call-context.js';
import type { CallSources } from '../call-sources.js';
import { headerOf } from '../header-of.js';

/** What Express's and Fastify's requests have in common, as far as it matters here. */
export interface HttpRequest {
  readonly headers: IncomingMessage['headers'];
  readonly socket?: { readonly remoteAddress?: string | undefined };
  readonly raw?: IncomingMessage;
  readonly ip?: string;
  readonly user?: unknown;
  /** Express: the matched route. */
  readonly route?: { readonly path?: unknown };
  /** Fastify: the matched route. */
  readonly routeOptions?: { readonly url?: unknown };
}

/** Express's response is Node's own; Fastify's reply holds it. */
export type HttpResponse = ServerResponse | { readonly raw: ServerResponse };

/** A call that an HTTP request brought. What costs something is found out when it is first asked for. */
export abstract class RequestCall implements CallContext {
  abstract readonly transport: 'http' | 'graphql';
  abstract readonly route: string | undefined;
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly #sources: CallSources;

  constructor(
    context: ExecutionContext,
    methodName: string,
    readonly request: HttpRequest | undefined,
    readonly response: HttpResponse | undefined,
    sources: CallSources,
  ) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.#sources = sources;
  }

  get ip(): string | undefined {
    const { request } = this;
    if (request === undefined) return undefined;
    const { trustAdapter, socketAddress, normalize } = this.#sources;
    if (trustAdapter && request.ip !== undefined) return normalize(request.ip);
    return socketAddress((request.raw ?? request).socket?.remoteAddress, this.header);
  }

  /** Asked anew each time: guards put the user on the request while the call is on its way. */
  get user(): string | undefined {
    return this.#sources.userOf(this);
  }

  /** Bound to this call: key functions take their argument apart. */
  readonly header = (name: string): string | undefined => headerOf(this.request?.headers, name);
}

/** A call of an HTTP handler. */
export class HttpCall extends RequestCall {
  readonly transport = 'http';
  declare readonly request: HttpRequest;
  declare readonly response: HttpResponse;

  constructor(context: ExecutionContext, methodName: string, sources: CallSources) {
    super(context, methodName, context.getArgByIndex(0), context.getArgByIndex(1), sources);
  }

  get route(): string | undefined {
    const template = this.request.routeOptions?.url ?? this.request.route?.path;
    return typeof template === 'string' ? template : undefined;
  }
}

/** Node's response behind the framework's. */
export function rawResponse(response: HttpResponse): ServerResponse {
  return 'raw' in response ? response.raw : response;
}
