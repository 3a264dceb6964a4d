import { bars } from './charts.mjs';

export function observers({ results, clients, pace }) {
  const [[none]] = Object.entries(results);
  return {
    title: 'Being observed',
    charts: {
      observers: bars({
        heading: 'A decision in memory through the guard',
        unit: `nanoseconds, ${clients.toLocaleString('en-US')} clients, less is better`,
        own: (name) => name.startsWith(none),
        rows: Object.entries(results).map(([name, figures]) => ({ name, values: [figures['ns/decision']] })),
      }),
    },
    text: (chart) => `
What an observer adds to a decision through the guard, on a request and a response that do nothing themselves. Each
contestant had ${pace.processes} processes, one after another; the two without an observer show how far the same code differs
from itself.

${chart('observers')}

${Object.entries(results)
  .slice(1)
  .map(([name, figures]) => `- ${name}: ${percent(figures['of none'] - 1)}`)
  .join('\n')}`,
  };
}

function percent(part) {
  const value = (part * 100).toFixed(1);
  return `${part < 0 ? '−' : '+'}${value.replace('-', '')} %`;
}
