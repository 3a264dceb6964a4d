import { readdirSync, readFileSync } from 'node:fs';
import { ERROR_CODES } from '../lib/core/errors.js';

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
