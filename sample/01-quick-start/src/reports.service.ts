import { Injectable } from '@nestjs/common';
import { CommonLimit } from 'nestjs-distlimit';

@Injectable()
export class ReportsService {
  /** Limits the method itself, whoever calls it. The first argument says whose quota it is. */
  @CommonLimit({ limit: 2, window: '10s' }, { key: (customer: string) => customer })
  async build(customer: string): Promise<string> {
    return `report for ${customer}`;
  }
}
