import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { METRIC_NAMES, METRICS, labelsOf, type MetricName } from '../../lib/metrics/metrics.js';

const read = (name: string) => readFileSync(new URL(`../../dashboards/${name}`, import.meta.url), 'utf8');

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

export const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
};

/** Every query of the dashboard, by its panel. */
export const dashboardQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

export const alerts = (
  parse(read('alerts.yml')) as { groups: { rules: { alert: string; expr: string; annotations: object }[] }[] }
).groups.flatMap(({ rules }) => rules);

/** What Grafana puts in place of its variables. */
export function withoutVariables(expr: string, rateInterval: string): string {
  return expr.replaceAll('$__rate_interval', rateInterval).replaceAll(/\$(job|instance|policy)\b/g, '.*');
}

/** The metrics that an expression asks for, and the labels by which it selects and groups. */
export function askedFor(expr: string): { readonly metrics: string[]; readonly labels: string[] } {
  const metrics = [...expr.matchAll(/\bdistlimit_\w+/g)].map(([name]) => name);
  const selectors = [...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label);
  const groups = [...expr.matchAll(/\b(?:by|without|on)\s*\(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((label) => label.trim()),
  );
  return { metrics, labels: [...selectors, ...groups] };
}

/** The metric whose series have that name. */
export function metricOf(series: string): MetricName | undefined {
  const name = series.replace(/^distlimit_/, '');
  return METRIC_NAMES.find((known) =>
    METRICS[known].kind === 'histogram'
      ? [`${known}_bucket`, `${known}_sum`, `${known}_count`].includes(name)
      : known === name,
  );
}

/** The labels that its series have in Prometheus. */
export function labelsInPrometheus(name: MetricName): string[] {
  return [...labelsOf(name, true), 'job', 'instance', ...(METRICS[name].kind === 'histogram' ? ['le'] : [])];
}
