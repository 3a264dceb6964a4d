import { once } from 'node:events';
import { libraryProcesses } from './support/library-processes.js';

it('counts the hits of a throttler on Nest 12', async () => {
  const processes = libraryProcesses('throttled-app.mjs', 'throttler/index');
  try {
    const [port] = (await once(processes.start(), 'message')) as [number];
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await fetch(`http://127.0.0.1:${port}/cats`)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  } finally {
    processes.stop();
  }
});
