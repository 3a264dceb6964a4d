import fc from 'fast-check';
import { FNV_OFFSET_BASIS } from '../../../lib/drivers/memory/fnv1a.js';
import { Shard } from '../../../lib/drivers/memory/shard.js';
import { SubjectKey } from '../../../lib/drivers/memory/subject-key.js';
import { SubjectTable } from '../../../lib/drivers/memory/subject-table.js';
import { collidingTexts } from './support.js';

const COLLIDING = collidingTexts(12);

/** A shard, and a plain Map that has to agree with it. */
class Twin {
  readonly shard = new Shard(1, false);
  readonly #key = new SubjectKey(FNV_OFFSET_BASIS);
  readonly model = new Map<string, { value: number; expiry: number }>();
  /** Where the sweep under way stands; -1 when there is none. */
  cursor = -1;
  sweptTo = 0;

  slot(name: string): number {
    this.#key.set(name);
    return this.shard.find(name, this.#key);
  }

  put(name: string, value: number, expiry: number): void {
    let slot = this.slot(name);
    if (slot < 0) {
      slot = this.shard.insert(name, this.#key);
      if (this.value(slot) !== 0) throw new Error(`'${name}' did not begin at zero`);
    }
    this.shard.columns.records[this.shard.columns.registersAt(slot)] = value;
    this.shard.keepFor(slot, 0, expiry);
    this.model.set(name, { value, expiry });
  }

  remove(name: string): void {
    const slot = this.slot(name);
    if (slot >= 0 !== this.model.has(name)) throw new Error(`'${name}' is not where it should be`);
    if (slot >= 0) this.shard.remove(slot);
    this.model.delete(name);
  }

  /** One slice. What it removes must have been due; what else is due it may leave for later. */
  slice(budget: number, now: number): void {
    if (this.cursor < 0) this.sweptTo = now;
    this.cursor = this.shard.sweep(Math.max(0, this.cursor), budget, this.sweptTo);
    for (const [name, { expiry }] of [...this.model]) {
      if (this.slot(name) >= 0) continue;
      if (expiry > this.sweptTo) throw new Error(`'${name}' went before its time`);
      this.model.delete(name);
    }
  }

  value(slot: number): number {
    return this.shard.columns.records[this.shard.columns.registersAt(slot)]!;
  }

  check(): void {
    expect(this.shard.count).toBe(this.model.size);
    for (const [name, { value, expiry }] of this.model) {
      const slot = this.slot(name);
      const held = slot >= 0 && this.value(slot) === value && this.shard.expiry(slot) === expiry;
      if (!held) throw new Error(`'${name}' is not held as it was put`);
    }
  }

  /** Whether whatever is due by then would be found: no shard may believe that it has nothing to do. */
  checkSweepComes(now: number): void {
    const due = [...this.model.values()].some(({ expiry }) => expiry <= now);
    if (due && this.cursor < 0) expect(this.shard.nextExpiry).toBeLessThanOrEqual(now);
  }
}

type Step =
  | { kind: 'put'; from: number; count: number; expiry: number }
  | { kind: 'remove'; from: number; count: number }
  | { kind: 'slice'; budget: number; now: number };

const steps = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('put' as const),
        from: fc.nat(3000),
        count: fc.nat(700),
        expiry: fc.nat(100),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('remove' as const),
        from: fc.nat(3000),
        count: fc.nat(300),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('slice' as const),
        budget: fc.integer({ min: 1, max: 900 }),
        now: fc.nat(100),
      }),
    },
  ),
  { maxLength: 14 },
);

function play(twin: Twin, name: (i: number) => string, plan: Step[]): void {
  let value = 0;
  for (const step of plan) {
    if (step.kind === 'slice') twin.slice(step.budget, step.now);
    else {
      for (let i = step.from; i < step.from + step.count; i++) {
        if (step.kind === 'put') twin.put(name(i), ++value, step.expiry);
        else twin.remove(name(i));
      }
    }
    twin.check();
    twin.checkSweepComes(100);
  }
}

describe('Shard', () => {
  it('is a map while it grows, is swept in slices and shrinks', () => {
    fc.assert(
      fc.property(steps, (plan) => play(new Twin(), (i) => `user:${i}`, plan)),
      { numRuns: 60 },
    );
  });

  it('is a map while keys that collide make it change its hash function', () => {
    fc.assert(
      fc.property(steps, (plan) => play(new Twin(), (i) => COLLIDING[i]!, plan)),
      { numRuns: 15 },
    );
  });

  it('sees through keys that were built to collide, and probes no further than for others', () => {
    const twin = new Twin();
    COLLIDING.slice(0, 20).forEach((name, i) => twin.put(name, i, 50));
    expect(twin.shard.hardened).toBe(false);
    COLLIDING.forEach((name, i) => twin.put(name, i, 50));
    expect(twin.shard.hardened).toBe(true);
    twin.check();
    let longest = 0;
    for (let i = 0; i < 500; i++) {
      twin.put(`later:${i}`, i, 50);
      longest = Math.max(longest, twin.shard.columns.lastProbes);
    }
    expect(longest).toBeLessThan(300);
  });

  it('does not take chance for an attack', () => {
    const twin = new Twin();
    for (let i = 0; i < 100_000; i++) twin.put(`user:${i}`, i, 50);
    expect(twin.shard.hardened).toBe(false);
  });

  it('gives memory back when most has expired', () => {
    const twin = new Twin();
    for (let i = 0; i < 20_000; i++) twin.put(`user:${i}`, i, i < 100 ? 90 : 10);
    const before = twin.shard.columns.capacity;
    while (twin.shard.nextExpiry <= 50) twin.slice(4_096, 50);
    expect(twin.model.size).toBe(100);
    expect(twin.shard.columns.capacity).toBeLessThan(before / 50);
    twin.check();
  });

  it('comes back for what a removal moved past a sweep under way', () => {
    const twin = new Twin();
    for (let i = 0; i < 3_000; i++) twin.put(`user:${i}`, i, 40);
    for (let i = 0; i < 3_000; i += 7) twin.put(`user:${i}`, i, 90);
    for (let round = 0; round < 60; round++) {
      twin.slice(100, 30);
      for (let i = round * 40; i < round * 40 + 20; i++) twin.remove(`user:${i}`);
    }
    while (twin.cursor >= 0) twin.slice(100, 30);
    twin.checkSweepComes(40);
    while (twin.shard.nextExpiry <= 40) twin.slice(5_000, 40);
    expect([...twin.model.values()].every(({ expiry }) => expiry === 90)).toBe(true);
  });
});

describe('SubjectTable', () => {
  it('picks the shard by the remainder of the unsigned hash by 64, and makes it on first use', () => {
    const table = new SubjectTable('p', 1, false);
    for (const hash of [0, 1, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe]) {
      const index = hash % 64;
      expect(table.shard(hash | 0)).toBe(table.shard(hash));
      expect(table.shardAt(index)).toBe(table.shard(hash));
    }
    expect(table.shardAt(5)).toBeUndefined();
    const shard = table.shard(5);
    table.dropShard(5);
    expect(table.shard(5)).not.toBe(shard);
  });
});
