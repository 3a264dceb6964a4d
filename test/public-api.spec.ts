import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

// If this fails you changed what users can import. Meant so? `npm run public-api` rewrites the file.
it('exports exactly what public-api.txt says', () => {
  const frozen = readFileSync(`${root}public-api.txt`, 'utf8');
  const current = execFileSync(process.execPath, ['scripts/public-api.mjs', '--print'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(lines(current)).toEqual(lines(frozen));
}, 30_000);
