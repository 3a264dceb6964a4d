import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyServer } from 'httpxy';

const proxy = createProxyServer({ proxyTimeout: 10_000 });

/**
 * Passes a request on, and its answer back; both are streamed. Resolves when the answer has gone out, rejects where the
 * target does not answer.
 */
export function forward(request: IncomingMessage, response: ServerResponse, target: string): Promise<void> {
  // Each hop appends whom it saw. Not `xfwd: true`: that keeps a header that the client sent, and adds nothing to it.
  const hops = [request.headers['x-forwarded-for'], request.socket.remoteAddress];
  const headers = { 'x-forwarded-for': hops.filter((hop) => hop !== undefined).join(', ') };
  return proxy.web(request, response, { target, headers });
}
