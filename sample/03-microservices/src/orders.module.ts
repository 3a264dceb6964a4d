import { Controller, Module, type DynamicModule } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { RateLimit, RateLimitModule, type CallContext } from 'nestjs-distlimit';
import { countedIn, type Counting } from './counting.js';

export interface OrderQuery {
  readonly customer: string;
  readonly id: string;
}

export interface Order {
  readonly id: string;
  readonly state: string;
}

/** A message has no headers, so who asks is part of it. The address is that of the front, whoever asks. */
const customer = (call: CallContext) => (call.args[0] as OrderQuery).customer;

@Controller()
class OrdersController {
  @MessagePattern('orders.find')
  @RateLimit({ name: 'orders', limit: 3, window: '1m', key: customer })
  find(@Payload() { id }: OrderQuery): Order {
    return { id, state: 'shipped' };
  }
}

/** A service on TCP. */
@Module({})
export class OrdersModule {
  static with(counting: Counting): DynamicModule {
    return {
      module: OrdersModule,
      imports: [RateLimitModule.forRoot(countedIn(counting))],
      controllers: [OrdersController],
    };
  }
}
