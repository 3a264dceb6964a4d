import { readdirSync } from 'node:fs';
import { ERROR_CODES } from '../lib/core/errors.js';

it('has one page in docs/errors for each error code, and no other', () => {
  const pages = readdirSync(new URL('../docs/errors/', import.meta.url)).filter((name) =>
    name.endsWith('.md'),
  );
  expect(pages.toSorted()).toEqual(ERROR_CODES.map((code) => `${code}.md`).toSorted());
});
