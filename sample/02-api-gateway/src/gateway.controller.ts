import type { IncomingMessage, ServerResponse } from 'node:http';
import { All, BadGatewayException, Controller, Inject, Req, Res } from '@nestjs/common';
import { RateLimit } from 'nestjs-distlimit';
import { forward } from './forward.js';

/** Injects where the services are. */
export const SERVICES = Symbol('the services behind the gateway');
export interface Services {
  readonly orders: string;
  readonly stock: string;
}

@Controller()
// Decided together: a call that one of the three denies takes nothing from the others.
@RateLimit('plan', 'address', 'service')
export class GatewayController {
  constructor(@Inject(SERVICES) private readonly services: Services) {}

  // One route for all paths of a service, so that 'route' in a key means the service.
  @All('orders{/*path}')
  orders(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    return this.#pass(request, response, this.services.orders);
  }

  @All('stock{/*path}')
  stock(@Req() request: IncomingMessage, @Res() response: ServerResponse): Promise<void> {
    return this.#pass(request, response, this.services.stock);
  }

  async #pass(request: IncomingMessage, response: ServerResponse, target: string): Promise<void> {
    try {
      await forward(request, response, target);
    } catch {
      // Half an answer can't be taken back: the client sees that it ends early.
      if (response.headersSent) response.destroy();
      else throw new BadGatewayException('the service does not answer');
    }
  }
}
