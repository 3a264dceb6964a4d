import { Module, type DynamicModule } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { RateLimitModule } from 'nestjs-distlimit';
import { INSTANCE, JOURNAL, Jobs, type Journal } from './jobs.js';

export interface JobsOptions {
  readonly instance: string;
  readonly journal: Journal;
  /** Where the instances meet. Without one each counts for itself. */
  readonly redis: string | undefined;
  readonly prefix?: string;
}

@Module({})
export class AppModule {
  static with({ instance, journal, redis, prefix = 'sample-04' }: JobsOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ScheduleModule.forRoot(),
        RateLimitModule.forRoot({
          ...(redis !== undefined && {
            redis,
            prefix,
            // While Redis is away a limit of 1 is the share of one instance, and not of each.
            hybrid: { minShare: 0, expectedInstances: 2 },
          }),
        }),
      ],
      providers: [Jobs, { provide: INSTANCE, useValue: instance }, { provide: JOURNAL, useValue: journal }],
    };
  }
}
