import { BadRequestException, Controller, Get, Headers, Inject, Param, UseFilters } from '@nestjs/common';
import { Metadata } from '@grpc/grpc-js';
import { ClientProxy, type ClientGrpc } from '@nestjs/microservices';
import { timeout, type Observable } from 'rxjs';
import type { Order, OrderQuery } from './orders.module.js';
import type { Price, PriceQuery } from './prices.module.js';
import { ServiceFailures } from './service-failures.filter.js';

/** Inject the clients of the services. */
export const ORDERS = Symbol('orders, over TCP');
export const PRICES = Symbol('prices, over gRPC');

/** A service that is silent for so long counts as down: it may be frozen, or its machine gone. */
const ANSWERS_WITHIN_MS = 2_000;

interface Prices {
  find(query: PriceQuery, metadata: Metadata): Observable<Price>;
}

@Controller()
@UseFilters(ServiceFailures)
export class FrontController {
  readonly #prices: Prices;

  constructor(
    @Inject(ORDERS) private readonly orders: ClientProxy,
    @Inject(PRICES) prices: ClientGrpc,
  ) {
    this.#prices = prices.getService<Prices>('Prices');
  }

  @Get('orders/:id')
  order(@Headers('x-customer') customer: string | undefined, @Param('id') id: string): Observable<Order> {
    return this.orders
      .send<Order, OrderQuery>('orders.find', { customer: known(customer), id })
      .pipe(timeout(ANSWERS_WITHIN_MS));
  }

  @Get('prices/:sku')
  price(@Headers('x-customer') customer: string | undefined, @Param('sku') sku: string): Observable<Price> {
    const metadata = new Metadata();
    metadata.set('x-customer', known(customer));
    return this.#prices.find({ sku }, metadata).pipe(timeout(ANSWERS_WITHIN_MS));
  }
}

/** Here customers say who they are; elsewhere it is who has signed in, and never what a client typed. */
function known(customer: string | undefined): string {
  if (customer) return customer;
  throw new BadRequestException('who asks? Send the header x-customer');
}
