import { MemoryDriver } from 'nestjs-distlimit';
import { describeDriver } from 'nestjs-distlimit/testing';

describeDriver('the memory driver', { open: (clock) => new MemoryDriver({ clock }) });
