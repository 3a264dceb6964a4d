import { lines } from './charts.mjs';
import { table } from './markdown.mjs';

export function outage({ redis, timeline, plan, results }) {
  const spans = [
    { name: 'killed', from: timeline.killed, to: timeline.restarted },
    { name: 'frozen', from: timeline.frozen, to: timeline.thawed },
  ];
  const parts = Object.keys(Object.values(results)[0].parts);
  const chart = (heading, unit, value, options) =>
    lines({
      heading,
      unit,
      spans,
      ...options,
      lines: Object.entries(results).map(([name, { bySecond }]) => ({ name, values: bySecond.map(value) })),
    });
  const byPart = (value) =>
    table(
      ['', ...parts],
      Object.entries(results).map(([name, result]) => [
        name,
        ...parts.map((part) => value(result.parts[part])),
      ]),
    );
  const unanswered = Object.entries(results).filter(([, result]) => result.unanswered > 0);
  return {
    title: 'While Redis is away',
    charts: {
      'outage-admitted': chart(
        `Let through by the fleet, ${plan.limit} a second allowed`,
        'calls a second, of the subject that got most; the limit is the line to hold',
        ({ most }) => most,
        { level: { name: 'limit', value: plan.limit } },
      ),
      'outage-latency': chart(
        'How long calls waited',
        '99th percentile in milliseconds of the calls of a second, less is better',
        ({ p99Ms }) => Math.max(0.1, p99Ms),
        { logarithmic: true },
      ),
    },
    text: (chart) => `
${plan.instances} processes share a limit of ${plan.limit} a second for each of ${plan.subjects} subjects, and each process calls
${plan.callsPerSecond} times a second for each: alone it could use the whole limit. Redis ${redis} is killed after
${timeline.killed} s, comes back empty after ${timeline.restarted} s, is frozen after ${timeline.frozen} s and goes on after
${timeline.thawed} s. This library runs with the hybrid driver's defaults; rate-limiter-flexible with its
\`insuranceLimiter\`, once as its documentation sets it up and once with a timeout of ioredis for commands.

${chart('outage-admitted')}

The most that was let through in one second:

${byPart((part) => part['most in 1 s'])}

${chart('outage-latency')}

The longest 99th percentile of a second, in milliseconds:

${byPart((part) => part['p99 ms'])}

${
  unanswered.length === 0
    ? 'Every call had an answer.'
    : unanswered.map(([name, result]) => `${name}: ${result.unanswered} calls had no answer.`).join('\n')
}`,
  };
}
