import { METRIC_NAMES } from '../lib/metrics/metrics.js';
import {
  alerts,
  askedFor,
  dashboard,
  dashboardQueries,
  labelsInPrometheus,
  metricOf,
  withoutVariables,
} from './support/dashboard.js';

const queries = [
  ...dashboardQueries.map(({ title, expr }) => [`panel ${title}`, expr] as const),
  ...alerts.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
];

it.each(queries)('asks for metrics and labels that there are: %s', (_name, expr) => {
  const { metrics, labels } = askedFor(withoutVariables(expr, '5m'));
  expect(metrics.length).toBeGreaterThan(0);
  const known = metrics.map(metricOf);
  expect(known).not.toContain(undefined);
  const allowed = new Set(known.flatMap((name) => labelsInPrometheus(name!)));
  expect(labels.filter((label) => !allowed.has(label))).toEqual([]);
  expect(withoutVariables(expr, '5m')).not.toContain('$');
});

it('shows every metric on the dashboard', () => {
  const shown = new Set(dashboardQueries.flatMap(({ expr }) => askedFor(expr).metrics.map(metricOf)));
  expect(METRIC_NAMES.filter((name) => !shown.has(name))).toEqual([]);
});

it('fills its variables from metrics that there are', () => {
  const definitions = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
  expect(definitions).toHaveLength(3);
  for (const definition of definitions) {
    expect(askedFor(definition).metrics.map(metricOf)).not.toContain(undefined);
  }
});

it('says of each alert what it means', () => {
  for (const { annotations } of alerts) {
    expect(annotations).toEqual({ summary: expect.any(String), description: expect.any(String) });
  }
});
