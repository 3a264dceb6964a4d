import { bars, digits } from './charts.mjs';
import { table } from './markdown.mjs';

const OWN = 'nestjs-distlimit';
const callersOf = ({ callers }) => (callers === 1 ? '1 caller' : `${callers} callers`);

function chart(heading, unit, runs, names, value) {
  return bars({
    heading,
    unit,
    series: names,
    rows: runs.map((run) => ({
      name: callersOf(run),
      values: names.map((name) => run.figures[name] && value(run.figures[name])),
    })),
  });
}

const thousands = (figures) => figures['decisions/s'] / 1_000;

/** This library's figures as multiples of each other's. */
function ratios(runs, names, figure) {
  return table(
    ['', ...names],
    runs.map((run) => [callersOf(run), ...names.map((name) => `${digits(run.ratios[name][figure])} ×`)]),
  );
}

export function redis({ redis: version, speed, cluster, denials, pace }) {
  const rivals = [
    'rate-limiter-flexible',
    'rate-limit-redis',
    '@nest-lab/throttler-storage-redis',
    'bare INCR',
  ];
  const onCluster = ['rate-limiter-flexible', 'bare INCR'];
  const own = [OWN, `${OWN}, hybrid`, `${OWN}, three policies`];
  const unit = 'thousand a second, more is better';
  return {
    title: 'Decisions in Redis',
    charts: {
      'redis-decisions': chart('Decisions in one Redis', unit, speed, [OWN, ...rivals], thousands),
      'redis-p99': chart(
        'Latency in one Redis',
        '99th percentile in milliseconds, less is better',
        speed,
        [OWN, ...rivals],
        (figures) => figures['p99 ms'],
      ),
      'redis-own': chart('Plain, hybrid, and three policies on one call', unit, speed, own, thousands),
      ...(cluster.length === 0
        ? {}
        : {
            'redis-cluster': chart(
              'Decisions in a cluster of three masters',
              unit,
              cluster,
              [OWN, ...onCluster],
              thousands,
            ),
          }),
    },
    text: (chart) => `
Redis ${version} on the same machine, 10,000 keys, one connection a contestant, rivals with ioredis’ auto-pipelining;
chunks of ${pace.chunkMs} ms in turn, ${pace.rounds} rounds. Callers call again as soon as they have their answer.

${chart('redis-decisions')}

Times as many decisions a second as each, the median of the rounds' ratios:

${ratios(speed, rivals, 'decisions/s')}

A bare \`INCR\` is the floor: one command, no window, no answer of what is left.

${chart('redis-p99')}

Of each one's 99th percentile:

${ratios(speed, rivals, 'p99')}

${chart('redis-own')}

${
  cluster.length === 0
    ? ''
    : `${chart('redis-cluster')}

Every key has a hash slot of its own, and a script may touch one slot: on a cluster nothing can be decided together, and
what a decision costs in Redis shows.

${ratios(cluster, onCluster, 'decisions/s')}
`
}
Who was denied is remembered until that ends: ${digits(denials['remembered/s'] / denials['round trips/s'])} times as many
denials a second as round trips to Redis.`,
  };
}
