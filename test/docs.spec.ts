import { readdirSync, readFileSync } from 'node:fs';
import { ERROR_CODES } from '../lib/core/errors.js';
import { labelsOf, METRIC_NAMES, METRICS } from '../lib/metrics/metrics.js';
import { alerts } from './support/dashboard.js';

it('has one page in docs/errors for each error code, and no other', () => {
  const pages = readdirSync(new URL('../docs/errors/', import.meta.url)).filter(
    (name) => name !== 'README.md',
  );
  expect(pages.toSorted()).toEqual(ERROR_CODES.map((code) => `${code}.md`).toSorted());
});

it('lists each of them in the index, and shows a message of each', () => {
  const read = (name: string) => readFileSync(new URL(`../docs/errors/${name}.md`, import.meta.url), 'utf8');
  const index = read('README');
  for (const code of ERROR_CODES) {
    expect(index).toContain(`[\`${code}\`](${code}.md)`);
    expect(read(code)).toMatch(new RegExp(`^# ${code}$[^]*^${code}: .+$`, 'm'));
  }
});

it('has each fault that is tested in the table of docs/failure-modes.md, and no other', () => {
  const folder = new URL('./faults/', import.meta.url);
  const tested = readdirSync(folder)
    .filter((name) => name.endsWith('.spec.ts'))
    .flatMap((name) => [...readFileSync(new URL(name, folder), 'utf8').matchAll(/^it\((['"])(.+)\1, /gm)])
    .map(([, , title = '']) => title);
  const page = readFileSync(new URL('../docs/failure-modes.md', import.meta.url), 'utf8');
  const table = page.slice(page.indexOf('| fault ')).split('\n\n', 1)[0]!;
  const listed = table
    .split('\n')
    .slice(2)
    .map((row) => row.split('|').at(-2)!.trim());
  expect(tested.length).toBeGreaterThan(0);
  expect(listed.toSorted()).toEqual(tested.toSorted());
});

describe('docs/observability.md', () => {
  const page = readFileSync(new URL('../docs/observability.md', import.meta.url), 'utf8');
  const rowsOf = (start: string) =>
    [...page.matchAll(new RegExp(`^\\| \`(${start}\\w+)\` *\\|(.*)\\|$`, 'gm'))].map(
      ([, name = '', rest = '']) => ({
        name,
        cells: rest.split('|').map((cell) => cell.trim()),
      }),
    );

  it('has each metric, of its kind and with its labels, and no other', () => {
    const listed = rowsOf('distlimit_').map(({ name, cells: [kind, labels = ''] }) => ({
      name,
      kind,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }));
    expect(listed).toEqual(
      METRIC_NAMES.map((name) => ({
        name: `distlimit_${name}`,
        kind: METRICS[name].kind,
        labels: labelsOf(name, true),
      })),
    );
  });

  it('has each alert, and no other', () => {
    expect(rowsOf('RateLimit(?!Module)').map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert));
  });
});
