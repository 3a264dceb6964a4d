import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The page and its charts by their paths in a folder of docs. */
function pageIn(folder: string): Record<string, string> {
  const charts = readdirSync(join(folder, 'benchmarks')).toSorted();
  return Object.fromEntries(
    ['benchmarks.md', ...charts.map((chart) => `benchmarks/${chart}`)].map((file) => [
      file,
      readFileSync(join(folder, file), 'utf8'),
    ]),
  );
}

describe('docs/benchmarks.md', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'benchmarks-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it('and its charts are what the committed results give', () => {
    execFileSync(process.execPath, ['bench/report.mjs', '--out', folder]);
    expect(pageIn('docs')).toEqual(pageIn(folder));
  });

  it('shows every chart, and no other', () => {
    const { 'benchmarks.md': page, ...charts } = pageIn('docs');
    const shown = [...page!.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, file]) => file);
    expect(new Set(shown)).toEqual(new Set(Object.keys(charts)));
  });
});
