import { digits } from './charts.mjs';

/** A table of text and numbers: a row for each of `rows`, with a cell for each of `columns`. */
export function table(columns, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const cell = (value) => (typeof value === 'number' ? digits(value) : (value ?? ''));
  const rule = columns.map((_, i) => (i === 0 ? '---' : '--:'));
  return [line(columns), line(rule), ...rows.map((row) => line(row.map(cell)))].join('\n');
}

export const count = (value) => value.toLocaleString('en-US');
