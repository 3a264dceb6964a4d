import fc from 'fast-check';
import { FNV_OFFSET_BASIS, fnv1a32 } from '../../../lib/drivers/memory/fnv1a.js';
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

  /** A slice without a look at what it did: a look moves entries. */
  blindSlice(budget: number): void {
    this.cursor = this.shard.sweep(this.cursor, budget, this.sweptTo);
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

const place = { from: fc.nat(3000), expiry: fc.nat(100) };
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('put' as const), ...place, count: fc.nat(700) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('remove' as const), ...place, count: fc.nat(300) }),
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
    // Runs of a few hundred come by chance in a table that is nearly full; one run of all that collide has 4,096.
    expect(longest).toBeLessThan(COLLIDING.length / 4);
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
    for (let i = 0; i < 3_000; i++) twin.put(`user:${i}`, i, 90);
    const { columns } = twin.shard;
    // An entry that moves back by one when the one before it goes.
    let moved = 0;
    for (let slot = 1; slot < columns.capacity - 1 && moved < 20; slot++) {
      if (!columns.holds(slot) || !columns.holds(slot - 1)) continue;
      const name = columns.text(slot);
      twin.put(name, 0, 40);
      twin.slice(slot, 30);
      twin.remove(columns.text(slot - 1));
      if (twin.slot(name) === slot - 1) moved++;
      while (twin.cursor >= 0) twin.slice(columns.capacity, 30);
      twin.checkSweepComes(40);
      twin.remove(name);
    }
    expect(moved).toBe(20);
  });

  it('comes back for what had not moved yet when a sweep ended', () => {
    const twin = new Twin();
    let i = 0;
    const { capacity } = fullBeforeGrowth(twin, () => `user:${i++}`);
    const late = Math.floor(capacity * 0.95);
    const slot = [...Array(50).keys()].map((n) => late - n).find((n) => twin.shard.columns.holds(n))!;
    const name = twin.shard.columns.text(slot);
    twin.put(name, 0, 40);
    twin.slice(Math.floor(capacity / 2), 30);
    // It grows now, and this sweep won't see what stands behind the middle of the old columns.
    twin.put('one more', 1, 90);
    expect(twin.shard.columns.capacity).toBeGreaterThan(capacity);
    while (twin.cursor >= 0) twin.blindSlice(200);
    expect(twin.shard.nextExpiry).toBeLessThanOrEqual(40);
    expect(twin.model.has(name)).toBe(true);
  });
});

/** Fills a shard until the next insertion makes it grow. */
function fullBeforeGrowth(twin: Twin, name: () => string): { capacity: number } {
  for (let i = 0; i < 5_000; i++) twin.put(name(), i, 90);
  const { capacity } = twin.shard.columns;
  const probe = new Twin();
  for (let i = 0; probe.shard.columns.capacity <= capacity; i++) probe.put(`user:${i}`, i, 90);
  while (twin.model.size < probe.model.size - 1) twin.put(name(), 0, 90);
  return { capacity };
}

describe('SubjectTable', () => {
  const HASH_START = 7;

  function tableOf(names: readonly string[]) {
    const table = new SubjectTable('p', 1, false);
    const key = new SubjectKey(HASH_START);
    for (const name of names) {
      expect(table.find(name, key)).toBe(-1);
      table.shard.keepFor(table.shard.insert(name, key), 0, 100);
    }
    return { table, find: (name: string) => table.find(name, key) };
  }

  it('picks the shard by the remainder of the unsigned hash by 64, and makes it on first use', () => {
    const names = Array.from({ length: 300 }, (_, i) => `subject-${i}`);
    const { table, find } = tableOf([]);
    expect(Array.from({ length: 64 }, (_, i) => table.shardAt(i)).filter(Boolean)).toEqual([]);
    for (const name of names) {
      find(name);
      expect(table.shardAt((fnv1a32(name, HASH_START) >>> 0) % 64)).toBe(table.shard);
    }
    table.dropShard(0);
    expect(table.shardAt(0)).toBeUndefined();
  });

  it('finds a subject again wherever growth, removals, sweeps and dropped shards have moved it', () => {
    const names = Array.from({ length: 3_000 }, (_, i) => `subject-${i}`);
    const { table, find } = tableOf([]);
    const key = new SubjectKey(HASH_START);
    const random = randomOf(20_261);
    const present = new Set<string>();
    for (let turn = 0; turn < 40_000; turn++) {
      const name = names[random(turn < 20_000 ? names.length : 60)]!;
      const slot = find(name);
      expect(slot >= 0).toBe(present.has(name));
      if (slot >= 0) expect(table.shard.columns.text(slot)).toBe(name);
      if (slot < 0) {
        table.find(name, key);
        table.shard.keepFor(table.shard.insert(name, key), turn, 2_000);
        present.add(name);
      } else if (random(3) === 0) {
        table.shard.remove(slot);
        present.delete(name);
      }
      if (turn % 500 > 0) continue;
      const index = random(64);
      const shard = table.shardAt(index);
      if (shard === undefined) continue;
      for (const each of names) {
        if (find(each) >= 0 && table.shard === shard && shard.columns.hasExpired(find(each), turn))
          present.delete(each);
      }
      while (shard.sweep(0, 1_000_000, turn) >= 0);
      if (shard.count === 0) table.dropShard(index);
    }
    expect(present.size).toBeGreaterThan(0);
  });
});

function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >>> 8) % below;
  };
}
