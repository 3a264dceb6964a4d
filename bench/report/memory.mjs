import { bars, digits } from './charts.mjs';
import { count, table } from './markdown.mjs';

const RIVALS = ['rate-limiter-flexible', 'express-rate-limit', '@nestjs/throttler'];
const OWN = 'token-bucket tryAcquireSync';
const METHODS = ['tryAcquireSync', 'consumeSync', 'consume'];
const isOwn = (name) => name === 'nestjs-distlimit';
const millions = (nanoseconds) => 1_000 / nanoseconds;

export function memory({ speed, calls, steady, footprint, flood, pace }) {
  const algorithms = Object.keys(steady);
  const usual = speed.find(({ keys }) => keys === 1_000);
  const contestants = [OWN, 'bare Map', ...RIVALS];
  const lengths = footprint['nestjs-distlimit'];
  const collections = algorithms.reduce((sum, algorithm) => sum + steady[algorithm].collections, 0);
  return {
    title: 'Decisions in memory',
    charts: {
      'memory-decisions': bars({
        heading: 'Decisions in memory',
        unit: 'million a second by the number of keys, more is better',
        series: ['nestjs-distlimit', ...contestants.slice(1)],
        rows: speed.map(({ keys, nanoseconds }) => ({
          name: keys === 1 ? '1 key' : `${count(keys)} keys`,
          values: contestants.map((name) => millions(nanoseconds[name])),
        })),
      }),
      'memory-algorithms': bars({
        heading: 'The six algorithms',
        unit: 'million decisions a second at 1,000 keys, more is better',
        series: METHODS,
        rows: algorithms.map((algorithm) => ({
          name: algorithm,
          values: METHODS.map((method) => millions(usual.nanoseconds[`${algorithm} ${method}`])),
        })),
      }),
      'memory-bytes': bars({
        heading: 'Memory',
        unit: 'bytes a key at a million keys, heap and external memory, less is better',
        own: isOwn,
        rows: Object.entries(footprint).map(([name, { bytes }]) => ({ name, values: [bytes] })),
      }),
      'memory-turns': bars({
        heading: 'Pauses: the longest event-loop turn',
        unit: 'milliseconds, two million keys, less is better',
        series: ['while keys went in, 200 a turn', 'while they expired'],
        rows: Object.entries(footprint).map(([name, { inserting, expiring }]) => ({
          name,
          values: [inserting, expiring],
        })),
      }),
    },
    text: (chart) => `
Each contestant runs in a process of its own, in chunks of ${pace.chunkMs} ms that take turns, ${pace.rounds} rounds. Ours is
a token bucket, called by \`tryAcquireSync\`; the bare \`Map\` counts in a fixed window, and never lets a key go.

${chart('memory-decisions')}

Times as many decisions a second as each, the median of the rounds' ratios:

${table(
  ['keys', 'bare `Map`', ...RIVALS],
  speed.map(({ keys, ratios }) => [
    count(keys),
    ...['bare Map', ...RIVALS].map((name) => `${digits(ratios[name])} ×`),
  ]),
)}

@nestjs/throttler keeps an entry a hit up to its limit: it is compared at a limit of 100, the others with a limit that
denies nothing.

${chart('memory-algorithms')}

\`consumeSync\` returns a whole verdict, \`consume\` a promise of it. In ${count(calls)} calls of \`tryAcquireSync\` of each
algorithm in steady state the garbage collector ran ${collections === 0 ? 'never' : `${collections} times`}.

${chart('memory-bytes')}

${chart('memory-turns')}

While two million keys went in, no turn of 200 calls took this library longer than ${digits(lengths.inserting)} ms; while
they expired, none took longer than ${digits(lengths.expiring)} ms. Both are the longest turns that were seen, whatever made
them long: the garbage collector and the rest of the machine too.

Of ${count(flood.keys)} keys that were built to share one FNV-1a value a call takes ${digits(flood.crafted)} ns, of as many
random ones ${digits(flood.random)} ns.`,
  };
}
