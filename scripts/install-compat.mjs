// Installs the Nest 11 packages under compat/nest11, unless they are there and as new as their lockfile.
import { execSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const directory = fileURLToPath(new URL('../compat/nest11/', import.meta.url));

function modifiedAt(file) {
  return statSync(directory + file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

// npm writes the hidden lockfile last, so an install that was cut short is done again.
if (modifiedAt('node_modules/.package-lock.json') < modifiedAt('package-lock.json')) {
  console.log('Installing the Nest 11 packages into compat/nest11 …');
  execSync('npm ci --no-audit --no-fund --loglevel=error', { cwd: directory, stdio: 'inherit' });
}
