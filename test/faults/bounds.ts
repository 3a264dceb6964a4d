import { HOURLY_LIMIT, INSTANCES, LIMIT, SHARE, type FleetReport } from '../support/hybrid-fleet.js';

/** The most that may be let through, where a fault's rule allows for more than the ordinary bound. */
interface Most {
  /** Traffic spread over the instances, in any aligned window. */
  readonly spread?: number;
  /** In the hour's window. */
  readonly hourly?: number;
}

/**
 * Callers saw no error and no hang, and the fleet let through no more than `docs/failure-modes.md` says. Nor did it
 * deny what it need not: with one instance of four gone, three shares are the least.
 */
function expectBounds(report: FleetReport, most: Most = {}): void {
  const { errors, late, spread, pinned, hourly } = report;
  tell(report);
  expect(errors).toEqual([]);
  expect(late).toEqual([]);
  expect(Math.max(...spread)).toBeLessThanOrEqual(most.spread ?? 1.1 * LIMIT);
  expect(Math.max(...pinned)).toBeLessThanOrEqual(1.1 * LIMIT);
  expect(hourly).toBeLessThanOrEqual(most.hourly ?? 1.1 * HOURLY_LIMIT);
  expect(Math.min(...spread)).toBeGreaterThanOrEqual(LIMIT - SHARE);
  expect(Math.min(...pinned)).toBeGreaterThanOrEqual(SHARE);
}

/** The fault was met, bounds held, and everything is as before. */
export function expectOutage(report: FleetReport, most?: Most, breakers = report.breaker): void {
  expectBounds(report, most);
  for (const changes of breakers) expect(changes).toMatch(/^open .* closed$/);
}

/** Bounds held, and everything was decided in Redis. */
export function expectHealthy(report: FleetReport): void {
  expectBounds(report);
  expect(report.breaker.join('')).toBe('');
}

/** Callers saw no error, and each instance let through all that it could: more than twice what `expectBounds` allows. */
export function expectFull(report: FleetReport): void {
  const { errors, late, spread, pinned } = report;
  tell(report);
  expect(errors).toEqual([]);
  expect(late).toEqual([]);
  expect(Math.max(...spread)).toBeGreaterThan(3 * LIMIT);
  expect(Math.max(...spread)).toBeLessThanOrEqual((INSTANCES + 1) * LIMIT);
  expect(Math.max(...pinned)).toBeLessThanOrEqual(2 * LIMIT);
}

/** What was measured, for whoever runs the tests to see it. */
function tell({ requests, slowestMs, spread, pinned, hourly, breaker }: FleetReport): void {
  const { currentTestName } = expect.getState();
  const measured = { requests, slowestMs, spread: spread.join(), pinned: pinned.join(), hourly, breaker };
  process.stderr.write(`${currentTestName}: ${JSON.stringify(measured)}\n`);
}
