/** What is known of the call that is being decided: key functions, costs, skips and resolvers get it. */
export interface CallContext {
  readonly transport: 'http' | 'graphql' | 'websocket' | 'rpc' | 'method';
  /** The class and the method that will run, by name. */
  readonly className: string;
  readonly methodName: string;
  /** The arguments of the method (`@CommonLimit`) or of the handler as the framework holds them. */
  readonly args: readonly unknown[];
  /** The HTTP request, socket client or message context, where there is one. */
  readonly request?: any;
  /** The HTTP response, where there is one. */
  readonly response?: any;
  /** The client's address in canonical form: IPv4, or the network of an IPv6 address. */
  readonly ip?: string | undefined;
  /** Who is calling, once authentication has run: what the module's `userOf` says. */
  readonly user?: string | undefined;
  /** The route's template (`/cats/:id`), never the concrete path. */
  readonly route?: string | undefined;
  /** A request header by its name, in any spelling; repeated ones joined with commas. */
  header(name: string): string | undefined;
}
