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

/** An HTTP call. What costs something is found out when it is first asked for. */
export class HttpCall implements CallContext {
  readonly transport = 'http';
  readonly className: string;
  readonly methodName: string;
  readonly args: readonly unknown[];
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly #sources: CallSources;

  constructor(context: ExecutionContext, methodName: string, sources: CallSources) {
    this.className = context.getClass().name;
    this.methodName = methodName;
    this.args = context.getArgs();
    this.request = this.args[0] as HttpRequest;
    this.response = this.args[1] as HttpResponse;
    this.#sources = sources;
  }

  get ip(): string | undefined {
    const { clientAddress, normalize } = this.#sources;
    const { request } = this;
    if (clientAddress === 'adapter') return request.ip === undefined ? undefined : normalize(request.ip);
    return clientAddress((request.raw ?? request).socket?.remoteAddress, this.#header);
  }

  /** Asked anew each time: guards put the user on the request while the call is on its way. */
  get user(): string | undefined {
    return this.#sources.userOf(this);
  }

  get route(): string | undefined {
    const template = this.request.routeOptions?.url ?? this.request.route?.path;
    return typeof template === 'string' ? template : undefined;
  }

  header(name: string): string | undefined {
    return this.#header(name);
  }

  readonly #header = (name: string): string | undefined => headerOf(this.request.headers, name);
}

/** Node's response behind the framework's. */
export function rawResponse(response: HttpResponse): ServerResponse {
  return 'raw' in response ? response.raw : response;
}
