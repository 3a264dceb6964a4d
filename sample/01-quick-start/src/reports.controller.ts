import { Controller, Get, Param } from '@nestjs/common';
import { ReportsService } from './reports.service.js';

@Controller('reports')
export class ReportsController {
  constructor(private readonly reports: ReportsService) {}

  @Get(':customer')
  report(@Param('customer') customer: string): Promise<string> {
    return this.reports.build(customer);
  }
}
