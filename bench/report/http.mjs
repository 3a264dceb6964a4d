import { bars, digits } from './charts.mjs';
import { table } from './markdown.mjs';

const NAMES = {
  distlimit: 'nestjs-distlimit',
  unguarded: 'unguarded',
  headers: 'a guard that only sets headers',
  throttler: '@nestjs/throttler',
};
const ADAPTERS = { fastify: 'Fastify', express: 'Express' };

export function http({ results, rounds, seconds }) {
  const guards = Object.keys(NAMES);
  const chart = (heading, unit, guards, value) =>
    bars({
      heading,
      unit,
      series: guards.map((guard) => NAMES[guard]),
      rows: results.map((result) => ({
        name: ADAPTERS[result.adapter],
        values: guards.map((guard) => value(result, guard)),
      })),
    });
  const guarded = guards.filter((guard) => guard !== 'unguarded');
  return {
    title: 'A guarded handler over HTTP',
    charts: {
      'http-requests': chart(
        'Requests to a handler that returns a short text',
        'thousand a second, more is better',
        guards,
        ({ requestsPerSecond }, guard) => requestsPerSecond[guard] / 1_000,
      ),
      'http-added': chart(
        'What guarding adds',
        'microseconds of the server’s processor time a request, less is better',
        guarded,
        ({ addedUs }, guard) => addedUs[guard],
      ),
    },
    text: (chart) => `
One policy, 1,000 client addresses, load from another process on the same machine; ${rounds} rounds of ${seconds} s a
server, in turn. The figures are medians.

${chart('http-requests')}

${chart('http-added')}

${table(
  ['', 'requests of unguarded', 'adds', '@nestjs/throttler adds', 'part of that'],
  results.map(({ adapter, requestsOfUnguarded, addedUs, addedOfThrottler }) => [
    ADAPTERS[adapter],
    `${Math.round(requestsOfUnguarded * 100)} %`,
    `${digits(addedUs.distlimit)} µs`,
    `${digits(addedUs.throttler)} µs`,
    `${digits(addedOfThrottler)} ×`,
  ]),
)}`,
  };
}
