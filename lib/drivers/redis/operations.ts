import type { Receipt } from '../../core/algorithm.js';
import type { Charge, Counter, Decision } from '../../core/driver.js';
import type { Batch } from './batch.js';
import { NONE, OPERATION, RESULT } from './protocol.js';
import type { ReplyReader } from './reply-reader.js';

/** When and how a command went out. */
export interface Sent {
  /** By our own clock, in milliseconds; the explicit clock where there is one. */
  readonly at: number;
  /** Commands are numbered in the order they were sent. */
  readonly number: number;
}

/** One thing to be done in Redis, of one slot. It writes itself into a batch, and reads its part of the reply. */
export interface Operation<T> {
  /** How many checks' work it is. */
  readonly weight: number;
  /** One of its subjects: all of them are in one slot. */
  readonly subject: string;
  write(batch: Batch): void;
  read(reply: ReplyReader, sent: Sent, now: number): T;
}

/** A denial with what it was read from, for the deny cache. */
export interface DenialState {
  /** The decision's own time, in the store's milliseconds. */
  readonly now: number;
  readonly blockedMs: number;
  /** `undefined` for a log. */
  readonly registers: Float64Array | undefined;
}

export interface DecidedGroup {
  readonly passed: boolean;
  readonly decisions: readonly Decision[];
  /** In the order of the charges; `undefined` where one was admitted. */
  readonly denials: readonly (DenialState | undefined)[];
  readonly sent: Sent;
  /** When it was decided, in the store's milliseconds. */
  readonly now: number;
}

/** Reads the answer to one charge, or to a look. `serial` is that of a charge that was taken. */
function readAnswer(reply: ReplyReader, counter: Counter, now: number, cost: number, serial?: number) {
  const isAllowed = reply.next() === 1;
  return isAllowed ? readAllowed(reply, counter, cost, serial) : readDenied(reply, counter, now);
}

function readAllowed(reply: ReplyReader, { quota }: Counter, cost: number, serial: number | undefined) {
  const remaining = reply.next();
  const resetAfterMs = reply.next();
  const delayMs = reply.next();
  const chargedAt = reply.next();
  const mark = reply.next();
  const receipt: Receipt | undefined =
    serial === undefined
      ? undefined
      : { cost, limit: quota.limit, windowMs: quota.windowMs, chargedAt, mark, serial };
  const decision: Decision = {
    allowed: true,
    remaining,
    retryAfterMs: 0,
    resetAfterMs,
    delayMs,
    servedBy: 'redis',
    receipt,
  };
  return { decision, denial: undefined };
}

function readDenied(reply: ReplyReader, counter: Counter, now: number) {
  const decision: Decision = {
    allowed: false,
    remaining: reply.next(),
    retryAfterMs: reply.next(),
    resetAfterMs: reply.next(),
    delayMs: 0,
    servedBy: 'redis',
    receipt: undefined,
  };
  const denial: DenialState = { now, blockedMs: reply.next(), registers: readState(reply, counter) };
  return { decision, denial };
}

/** Reads the state that comes with a denial. */
function readState(reply: ReplyReader, { policy }: Counter): Float64Array | undefined {
  const { arithmetic } = policy;
  if (arithmetic.shape === 'log') return undefined;
  const registers = new Float64Array(arithmetic.registers.length);
  for (let i = 0; i < registers.length; i++) registers[i] = reply.next();
  return registers;
}

/** Charges that are decided together. */
export class DecideOperation implements Operation<DecidedGroup> {
  readonly #charges: readonly Charge[];

  constructor(charges: readonly Charge[]) {
    this.#charges = charges;
  }

  get weight(): number {
    return this.#charges.length;
  }

  get subject(): string {
    return this.#charges[0]!.subject;
  }

  write(batch: Batch): void {
    batch.put(OPERATION.decide);
    batch.put(this.#charges.length);
    for (const charge of this.#charges) {
      batch.putKey(charge);
      batch.putQuota(charge);
      batch.put(charge.cost);
      batch.put(charge.policy.blockMs);
      batch.put(charge.policy.mode === 'shadow' ? 1 : 0);
    }
  }

  read(reply: ReplyReader, sent: Sent, now: number): DecidedGroup {
    const passed = reply.result() === RESULT.done;
    const serial = reply.next();
    const decisions: Decision[] = [];
    const denials: (DenialState | undefined)[] = [];
    for (const charge of this.#charges) {
      const answer = readAnswer(reply, charge, now, charge.cost, passed ? serial : undefined);
      decisions.push(answer.decision);
      denials.push(answer.denial);
    }
    return { passed, decisions, denials, sent, now };
  }
}

/** What concerns one counter alone. */
abstract class CounterOperation<T> implements Operation<T> {
  readonly weight = 1;

  constructor(protected readonly counter: Counter) {}

  get subject(): string {
    return this.counter.subject;
  }

  abstract write(batch: Batch): void;
  abstract read(reply: ReplyReader, sent: Sent, now: number): T;
}

export class PeekOperation extends CounterOperation<Decision> {
  write(batch: Batch): void {
    batch.put(OPERATION.peek);
    batch.putKey(this.counter);
    batch.putQuota(this.counter);
  }

  read(reply: ReplyReader, _sent: Sent, now: number): Decision {
    reply.result();
    return readAnswer(reply, this.counter, now, 1).decision;
  }
}

/** What was found when a counter was settled. */
export interface Settled {
  readonly remaining: number;
  /** In the store's milliseconds. */
  readonly now: number;
}

/** Leaves at most so much of a counter, and of that takes a cost, or as much of it as there is. */
export class SettleOperation extends CounterOperation<Settled> {
  constructor(
    counter: Counter,
    private readonly most: number,
    private readonly cost: number,
  ) {
    super(counter);
  }

  write(batch: Batch): void {
    batch.put(OPERATION.settle);
    batch.putKey(this.counter);
    batch.putQuota(this.counter);
    batch.put(this.most);
    batch.put(this.cost);
  }

  read(reply: ReplyReader, _sent: Sent, now: number): Settled {
    reply.result();
    return { remaining: reply.next(), now };
  }
}

/** A change of one counter, of which others can be told: they forget what they remember of it. */
abstract class ChangeOperation extends CounterOperation<void> {
  constructor(
    counter: Counter,
    protected readonly announce: boolean,
  ) {
    super(counter);
  }

  protected begin(batch: Batch, operation: number): void {
    batch.put(operation);
    batch.putKey(this.counter);
  }

  protected putAnnounce(batch: Batch): void {
    batch.put(this.announce ? 1 : 0);
  }

  read(reply: ReplyReader): void {
    reply.result();
  }
}

export class RefundOperation extends ChangeOperation {
  constructor(
    counter: Counter,
    announce: boolean,
    private readonly receipt: Receipt,
  ) {
    super(counter, announce);
  }

  write(batch: Batch): void {
    const { cost, limit, windowMs, chargedAt, mark, serial = NONE } = this.receipt;
    this.begin(batch, OPERATION.refund);
    batch.putQuota(this.counter);
    this.putAnnounce(batch);
    for (const number of [cost, limit, windowMs, chargedAt, mark, serial]) batch.put(number);
  }
}

export class GiveBackOperation extends ChangeOperation {
  constructor(
    counter: Counter,
    announce: boolean,
    private readonly cost: number,
  ) {
    super(counter, announce);
  }

  write(batch: Batch): void {
    this.begin(batch, OPERATION.giveBack);
    batch.putQuota(this.counter);
    this.putAnnounce(batch);
    batch.put(this.cost);
  }
}

export class ResetOperation extends ChangeOperation {
  write(batch: Batch): void {
    this.begin(batch, OPERATION.reset);
    this.putAnnounce(batch);
  }
}

export class BlockOperation extends ChangeOperation {
  constructor(
    counter: Counter,
    announce: boolean,
    private readonly durationMs: number,
  ) {
    super(counter, announce);
  }

  write(batch: Batch): void {
    this.begin(batch, OPERATION.block);
    this.putAnnounce(batch);
    batch.put(this.durationMs);
  }
}

export class UnblockOperation extends ChangeOperation {
  write(batch: Batch): void {
    this.begin(batch, OPERATION.unblock);
    this.putAnnounce(batch);
  }
}
