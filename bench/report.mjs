// Writes docs/benchmarks.md and its charts from the committed results: npm run bench:report [-- --out FOLDER]
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { format, resolveConfig } from 'prettier';
import { http } from './report/http.mjs';
import { memory } from './report/memory.mjs';
import { observers } from './report/observers.mjs';
import { outage } from './report/outage.mjs';
import { redis } from './report/redis.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RESULTS = join(ROOT, 'bench/results');
const SECTIONS = { outage, redis, memory, http, observers };
/** Where charts lie beside the page. */
const CHARTS = 'benchmarks';

const { values } = parseArgs({ options: { out: { type: 'string', default: join(ROOT, 'docs') } } });

const results = Object.keys(SECTIONS).map((name) => {
  const file = join(RESULTS, `${name}.json`);
  const result = JSON.parse(readFileSync(file, 'utf8'));
  if (result.quick) throw new Error(`${file} comes from a quick run, whose figures mean nothing`);
  return result;
});

function conditions({ benchmark, date, machine }) {
  const { node, cpu, cores, os } = machine;
  return `| ${benchmark} | ${date} | ${node} | ${cpu}, ${cores} cores | ${os} |`;
}

const sections = results.map((result) => ({ result, ...SECTIONS[result.benchmark](result) }));
const [{ machine }] = results;

const page = `<!-- Written by npm run bench:report from bench/results: changes belong there. -->

# Benchmarks

Absolute figures change with the machine; look at how the bars of one chart stand to each other. \`bench/README.md\` says
what is measured, and how; \`npm run bench\` measures on your machine.

${sections
  .map(({ title, text, charts }) => {
    const image = (name) => `![${charts[name].heading}](${CHARTS}/${name}.svg)`;
    return `## ${title}\n${text(image)}`;
  })
  .join('\n\n')}

## Measured on

| benchmark | date | Node | processor | system |
| --------- | ---- | ---- | --------- | ------ |
${results.map(conditions).join('\n')}

${Object.entries(machine.versions)
  .map(([name, version]) => `${name} ${version}`)
  .join(', ')}.
`;

const folder = join(values.out, CHARTS);
mkdirSync(folder, { recursive: true });
for (const file of readdirSync(folder)) if (file.endsWith('.svg')) rmSync(join(folder, file));
for (const { charts } of sections) {
  for (const [name, { svg }] of Object.entries(charts)) writeFileSync(join(folder, `${name}.svg`), svg);
}
const style = await resolveConfig(join(ROOT, 'docs/benchmarks.md'));
writeFileSync(
  join(values.out, 'benchmarks.md'),
  await format(page, { ...style, parser: 'markdown', proseWrap: 'always' }),
);
