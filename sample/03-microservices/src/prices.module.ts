import { Controller, Module, type DynamicModule } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { RateLimit, RateLimitModule } from 'nestjs-distlimit';
import { countedIn, type Counting } from './counting.js';

export interface PriceQuery {
  readonly sku: string;
}

export interface Price {
  readonly sku: string;
  readonly cents: number;
}

@Controller()
class PricesController {
  // The headers of a gRPC call are its metadata.
  @GrpcMethod('Prices', 'Find')
  @RateLimit({ name: 'prices', limit: 2, window: '1m', key: 'header:x-customer' })
  find({ sku }: PriceQuery): Price {
    return { sku, cents: 499 };
  }
}

/** A service on gRPC. */
@Module({})
export class PricesModule {
  static with(counting: Counting): DynamicModule {
    return {
      module: PricesModule,
      imports: [RateLimitModule.forRoot(countedIn(counting))],
      controllers: [PricesController],
    };
  }
}
