import fc from 'fast-check';
import { EntryRing } from '../../../lib/drivers/memory/entry-ring.js';

type Model = [time: number, cost: number][];

class Push implements fc.Command<Model, EntryRing> {
  constructor(
    readonly time: number,
    readonly cost: number,
  ) {}
  check = () => true;
  run(model: Model, ring: EntryRing): void {
    model.push([this.time, this.cost]);
    ring.push(this.time, this.cost);
    compare(model, ring);
  }
  toString = () => `push(${this.time}, ${this.cost})`;
}

class DropOldest implements fc.Command<Model, EntryRing> {
  constructor(readonly share: number) {}
  check = () => true;
  run(model: Model, ring: EntryRing): void {
    const count = Math.floor(this.share * (model.length + 1));
    model.splice(0, count);
    ring.dropOldest(count);
    compare(model, ring);
  }
  toString = () => `dropOldest(${this.share} of all)`;
}

class Amend implements fc.Command<Model, EntryRing> {
  constructor(
    readonly share: number,
    readonly time: number,
    readonly cost: number,
  ) {}
  check = (model: Readonly<Model>) => model.length > 0;
  run(model: Model, ring: EntryRing): void {
    const index = Math.floor(this.share * model.length);
    model[index] = [this.time, this.cost];
    ring.amend(index, this.time, this.cost);
    compare(model, ring);
  }
  toString = () => `amend(${this.share} of all, ${this.time}, ${this.cost})`;
}

function compare(model: Model, ring: EntryRing): void {
  const entries = Array.from({ length: ring.size }, (_, i) => [ring.time(i), ring.cost(i)]);
  expect(entries).toEqual(model);
  expect(ring.total).toBe(model.reduce((sum, [, cost]) => sum + cost, 0));
}

describe('EntryRing', () => {
  it('is a queue of times and costs, as a plain array would be', () => {
    const times = fc.maxSafeNat();
    const costs = fc.nat(1_000_000);
    const shares = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const commands = fc.commands(
      [
        fc.tuple(times, costs).map(([time, cost]) => new Push(time, cost)),
        fc.tuple(times, costs).map(([time, cost]) => new Push(time, cost)),
        fc.tuple(times, costs).map(([time, cost]) => new Push(time, cost)),
        shares.map((share) => new DropOldest(share * share)),
        fc.tuple(shares, times, costs).map(([share, time, cost]) => new Amend(share, time, cost)),
      ],
      { size: 'large', maxCommands: 120 },
    );
    fc.assert(
      fc.property(commands, (all) => {
        fc.modelRun(() => ({ model: [], real: new EntryRing() }), all);
      }),
      { seed: 1, numRuns: 100 },
    );
  });

  it('starts empty', () => {
    compare([], new EntryRing());
  });

  it('keeps its order when it grows with its oldest entry anywhere', () => {
    for (let head = 0; head < 16; head++) {
      const ring = new EntryRing();
      for (let i = 0; i < head; i++) {
        ring.push(i, 1);
        ring.dropOldest(1);
      }
      const model: Model = [];
      for (let i = 0; i < 40; i++) {
        model.push([1_000 + i, i]);
        ring.push(1_000 + i, i);
        compare(model, ring);
      }
      ring.dropOldest(40);
      compare([], ring);
    }
  });
});
