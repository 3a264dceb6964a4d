import { ALGORITHMS } from '../../lib/algorithms/index.js';
import { pureExecutor } from '../support/pure.js';
import { runVectors } from '../support/run-vectors.js';
import { VECTORS } from './index.js';

for (const [name, scenarios] of Object.entries(VECTORS)) {
  runVectors(name, scenarios, () => pureExecutor(ALGORITHMS[name as keyof typeof VECTORS]));
}

it('has vectors for every algorithm', () => {
  expect(Object.keys(VECTORS).sort()).toEqual(Object.keys(ALGORITHMS).sort());
});
