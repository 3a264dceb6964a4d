// Builds the package twice: dist/esm for import, dist/cjs for require.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

rmSync(`${root}dist`, { recursive: true, force: true });
for (const project of ['tsconfig.esm.json', 'tsconfig.cjs.json']) {
  try {
    execFileSync(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' });
  } catch (error) {
    process.exit(error.status ?? 1); // tsc has said why
  }
}
// The package says "type": "module"; without this Node would take dist/cjs for ES modules.
writeFileSync(`${root}dist/cjs/package.json`, '{"type":"commonjs"}\n');
