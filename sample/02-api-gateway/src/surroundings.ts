import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { forward } from './forward.js';

/** What is around a gateway elsewhere too: services behind it, and a load balancer in front. */
export interface Neighbour {
  readonly url: string;
  close(): Promise<void>;
}

/** Answers what it was asked, by whom, and with how long a body. */
export function startService(name: string): Promise<Neighbour> {
  return listen('127.0.0.1', 0, async (request, response) => {
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    const { method, url, headers } = request;
    const seen = { service: name, method, url, bytes, forwardedFor: headers['x-forwarded-for'] };
    response.setHeader('content-type', 'application/json').end(`${JSON.stringify(seen)}\n`);
  });
}

/** Appends the client's address to X-Forwarded-For, as load balancers do. */
export function startLoadBalancer(target: string, port: number): Promise<Neighbour> {
  return listen(undefined, port, (request, response) => {
    forward(request, response, target).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
  });
}

async function listen(host: string | undefined, port: number, listener: RequestListener): Promise<Neighbour> {
  const server: Server = createServer(listener).listen(port, host);
  await once(server, 'listening');
  return {
    url: `http://${host ?? 'localhost'}:${(server.address() as AddressInfo).port}`,
    async close() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
