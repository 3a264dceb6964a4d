import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { readFileSync } from 'node:fs';
import { alerts } from '../support/dashboard.js';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const promtool = (...args: string[]) => execFileSync('promtool', args, { encoding: 'utf8' });

it('are rules that Prometheus takes', () => {
  expect(promtool('check', 'rules', path('../../dashboards/alerts.yml'))).toContain(
    `SUCCESS: ${alerts.length} rules found`,
  );
});

it('fire where they should, and not before', () => {
  expect(promtool('test', 'rules', path('alerts.test.yml'))).toContain('SUCCESS');
});

it('are all tested, both ways', () => {
  const { tests } = parse(readFileSync(path('alerts.test.yml'), 'utf8')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
  };
  const cases = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  for (const { alert } of alerts) {
    const counts = cases
      .filter(({ alertname }) => alertname === alert)
      .map(({ exp_alerts }) => exp_alerts.length);
    expect([alert, Math.min(...counts), Math.max(...counts)]).toEqual([alert, 0, 1]);
  }
});
