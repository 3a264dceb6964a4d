import { HOURLY_LIMIT, LIMIT, type FleetReport } from '../support/hybrid-fleet.js';

/** Callers saw no error and no hang, and the fleet let through no more than is published. */
export function expectBounds(fault: string, report: FleetReport): void {
  const { requests, errors, late, slowestMs, spread, pinned, hourly, breaker } = report;
  process.stderr.write(
    `${fault}: ${JSON.stringify({ requests, slowestMs, spread, pinned, hourly, breaker })}\n`,
  );
  expect(errors).toEqual([]);
  expect(late).toEqual([]);
  expect(Math.max(...spread)).toBeLessThanOrEqual(1.1 * LIMIT);
  expect(Math.max(...pinned)).toBeLessThanOrEqual(2 * LIMIT);
  expect(hourly).toBeLessThanOrEqual(1.1 * HOURLY_LIMIT);
}
