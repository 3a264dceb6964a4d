import {
  BadRequestException,
  Controller,
  Get,
  Headers,
  Inject,
  Param,
  UseInterceptors,
} from '@nestjs/common';
import { Metadata } from '@grpc/grpc-js';
import { ClientProxy, type ClientGrpc } from '@nestjs/microservices';
import type { Observable } from 'rxjs';
import type { Order, OrderQuery } from './orders.module.js';
import type { Price, PriceQuery } from './prices.module.js';
import { ServiceDenials } from './service-denials.interceptor.js';

/** Inject the clients of the services. */
export const ORDERS = Symbol('orders, over TCP');
export const PRICES = Symbol('prices, over gRPC');

interface Prices {
  find(query: PriceQuery, metadata: Metadata): Observable<Price>;
}

@Controller()
@UseInterceptors(ServiceDenials)
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
    return this.orders.send<Order, OrderQuery>('orders.find', { customer: known(customer), id });
  }

  @Get('prices/:sku')
  price(@Headers('x-customer') customer: string | undefined, @Param('sku') sku: string): Observable<Price> {
    const metadata = new Metadata();
    metadata.set('x-customer', known(customer));
    return this.#prices.find({ sku }, metadata);
  }
}

/** Here customers say who they are; elsewhere it is who has signed in, and never what a client typed. */
function known(customer: string | undefined): string {
  if (customer) return customer;
  throw new BadRequestException('who asks? Send the header x-customer');
}
