import { HOURLY_LIMIT, LIMIT, type FleetReport } from '../support/hybrid-fleet.js';

/**
 * Callers saw no error and no hang, and the fleet let through no more than `docs/failure-modes.md` says.
 *
 * @param most with traffic spread over the instances, and pinned to one, in any aligned window; in the hour's
 */
export function expectBounds(
  report: FleetReport,
  most: { spread?: number; pinned?: number; hourly?: number } = {},
): void {
  const { errors, late, spread, pinned, hourly } = report;
  tell(report);
  expect(errors).toEqual([]);
  expect(late).toEqual([]);
  expect(Math.max(...spread)).toBeLessThanOrEqual(most.spread ?? 1.1 * LIMIT);
  expect(Math.max(...pinned)).toBeLessThanOrEqual(most.pinned ?? 2 * LIMIT);
  expect(hourly).toBeLessThanOrEqual(most.hourly ?? 1.1 * HOURLY_LIMIT);
}

/** Nobody noticed anything: everything was decided in Redis. */
export function expectHealthy(report: FleetReport): void {
  const { errors, late, spread, breaker } = report;
  tell(report);
  expect(errors).toEqual([]);
  expect(late).toEqual([]);
  expect(breaker.join('')).toBe('');
  expect(Math.max(...spread)).toBeLessThanOrEqual(1.1 * LIMIT);
}

/** What was measured, for whoever runs the tests to see it. */
function tell({ requests, slowestMs, spread, pinned, hourly }: FleetReport): void {
  const { currentTestName } = expect.getState();
  const measured = { requests, slowestMs, spread: spread.join(), pinned: pinned.join(), hourly };
  process.stderr.write(`${currentTestName}: ${JSON.stringify(measured)}\n`);
}
