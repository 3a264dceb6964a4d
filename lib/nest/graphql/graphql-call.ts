import type { ExecutionContext } from '@nestjs/common';
import type { CallSources } from '../call-sources.js';
import { rawResponse, RequestCall, type HttpRequest, type HttpResponse } from '../http/http-call.js';

/** What servers give resolvers as context: Apollo `req`, which in Express has `res`; Mercurius `reply`. */
interface GraphqlContext extends Subscribed {
  readonly req?: HttpRequest & Subscribed & { readonly res?: unknown };
  readonly res?: unknown;
  readonly request?: HttpRequest & Subscribed;
  readonly reply?: { readonly request: HttpRequest & Subscribed };
}

/** What `graphql-ws` knows of a connection, which Nest passes on as the request. */
interface Subscribed {
  readonly extra?: { readonly request?: HttpRequest };
}

/** As much of GraphQL's `info` as matters here. */
interface ResolveInfo {
  readonly parentType: { readonly name: string };
  readonly fieldName: string;
}

/** One field that is resolved. Address, headers and user are those of the request that asked for it. */
export class GraphqlCall extends RequestCall {
  readonly transport = 'graphql';

  constructor(context: ExecutionContext, methodName: string, sources: CallSources) {
    const [graphqlContext] = contextAndInfo(context.getArgs());
    super(context, methodName, requestIn(graphqlContext), responseIn(graphqlContext), sources);
  }

  get route(): string {
    const [, { parentType, fieldName }] = contextAndInfo(this.args);
    return `${parentType.name}.${fieldName}`;
  }
}

/** What every resolver is given last. One that resolves a reference of a federated graph gets no arguments before it. */
function contextAndInfo(args: readonly unknown[]) {
  return args.slice(-2) as [context: GraphqlContext | undefined, info: ResolveInfo];
}

/** Never the context itself: applications may spread into it what clients have sent. */
function requestIn(context: GraphqlContext | undefined): HttpRequest | undefined {
  const given = context?.req ?? context?.request ?? context?.reply?.request;
  const request = (given ?? context)?.extra?.request ?? given;
  return request?.headers === undefined ? undefined : request;
}

function responseIn(context: GraphqlContext | undefined): HttpResponse | undefined {
  return [context?.res, context?.reply, context?.req?.res].find(isResponse);
}

/**
 * Over a socket there is none, and something else may stand in its place: what Mercurius calls the reply holds nothing but
 * the request, and a context function's second argument is a message's id.
 */
function isResponse(value: unknown): value is HttpResponse {
  if (typeof value !== 'object' || value === null) return false;
  return typeof rawResponse(value as HttpResponse)?.setHeader === 'function';
}
