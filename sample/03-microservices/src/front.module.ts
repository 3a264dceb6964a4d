import { Module, type DynamicModule } from '@nestjs/common';
import { ClientsModule, Transport, type GrpcOptions } from '@nestjs/microservices';
import { FrontController, ORDERS, PRICES } from './front.controller.js';

export interface Services {
  readonly orders: { readonly host: string; readonly port: number };
  readonly prices: GrpcOptions['options'];
}

/** HTTP for the world. It has no limits of its own here: the services protect themselves, whoever calls them. */
@Module({})
export class FrontModule {
  static with({ orders, prices }: Services): DynamicModule {
    return {
      module: FrontModule,
      imports: [
        ClientsModule.register([
          { name: ORDERS, transport: Transport.TCP, options: orders },
          { name: PRICES, transport: Transport.GRPC, options: prices },
        ]),
      ],
      controllers: [FrontController],
    };
  }
}
