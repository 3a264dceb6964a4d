import { Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { CommonLimit } from 'nestjs-distlimit';

/** Injects who this instance is. */
export const INSTANCE = Symbol('the name of this instance');

/** What was run, and by whom: here a list, elsewhere a database. */
export const JOURNAL = Symbol('the journal');
export type Journal = string[];

@Injectable()
export class Jobs {
  constructor(
    @Inject(INSTANCE) private readonly instance: string,
    @Inject(JOURNAL) private readonly journal: Journal,
  ) {}

  /** Every instance ticks. One of them gets the one run of each two seconds; the others skip, and say so once. */
  @Interval(500)
  @CommonLimit({ name: 'report', limit: 1, window: '2s', algorithm: 'fixed-window' }, { onLimited: 'skip' })
  async report(): Promise<void> {
    this.journal.push(`report by ${this.instance}`);
  }

  /** The partner takes one call a second from all of us. Calls wait their turn instead of failing. */
  @CommonLimit(
    { name: 'partner', limit: 1, window: '1s', algorithm: 'gcra' },
    { onLimited: 'wait', maxWaitMs: 10_000 },
  )
  async callPartner(order: string): Promise<void> {
    this.journal.push(`${order} sent by ${this.instance}`);
  }
}
