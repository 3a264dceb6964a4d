import { ALGORITHMS } from '../../lib/algorithms/index.js';
import { MemoryDriver } from '../../lib/drivers/memory/memory-driver.js';
import { driverExecutor } from '../support/driver-executor.js';
import { runVectors } from '../support/run-vectors.js';
import { VECTORS } from './index.js';

const clock = { time: 0, now: () => clock.time };
const driver = new MemoryDriver({ clock });

afterAll(() => driver.close());

for (const [name, scenarios] of Object.entries(VECTORS)) {
  const algorithm = ALGORITHMS[name as keyof typeof VECTORS];
  runVectors(name, scenarios, () => driverExecutor(driver, algorithm, (now) => void (clock.time = now)));
}
