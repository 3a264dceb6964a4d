import { OperatorLog } from '../../../lib/nest/operator-log.js';

type State = 'closed' | 'open' | 'half-open' | 'recovering';

function open() {
  const lines: string[] = [];
  const at = { now: 0 };
  const write = (level: string) => (text: unknown) => void lines.push(`${level} ${String(text)}`);
  const sink = { log: write('log'), warn: write('warn'), debug: write('debug') };
  const log = new OperatorLog(sink, () => at.now);
  const change = (previous: State, current: State, reason = 'why') =>
    log.breakerChange({ driver: 'hybrid', previous, current, reason, error: undefined });
  return { log, lines, at, change };
}

it('writes one line for each change of the breaker, how long it took and what was settled', () => {
  const { log, lines, at, change } = open();
  change('closed', 'open', 'connect ECONNREFUSED');
  at.now = 5_000;
  change('open', 'half-open');
  change('half-open', 'open');
  at.now = 12_400;
  change('open', 'half-open');
  change('half-open', 'recovering', 'the probe was answered');
  log.reconcile({ driver: 'hybrid', reconciled: 400, dropped: 30 });
  log.reconcile({ driver: 'hybrid', reconciled: 12, dropped: 7 });
  at.now = 18_900;
  change('recovering', 'closed');
  change('closed', 'open');
  expect(lines.filter((line) => !line.startsWith('debug'))).toEqual([
    "warn RL_BREAKER_OPEN: the driver 'hybrid' decides without Redis: connect ECONNREFUSED",
    "log RL_BREAKER_RECOVERING: the driver 'hybrid' asks Redis again after 12.4 s: the probe was answered",
    "log RL_BREAKER_CLOSED: the driver 'hybrid' is as it was after 18.9 s: Redis was charged with 412 of what was " +
      'let through, and 37 was dropped',
    "warn RL_BREAKER_OPEN: the driver 'hybrid' decides without Redis: why",
  ]);
  expect(lines.filter((line) => line.startsWith('debug'))).toHaveLength(3);
});

it('writes one line a minute for each kind of error, and how many there were', () => {
  const { log, lines, at } = open();
  const fail = (message: string) => log.driverError({ driver: 'redis', error: new Error(message) });
  for (let i = 0; i < 1_000; i++) fail(`OOM command ${i} not allowed`);
  for (let i = 0; i < 1_000; i++) fail(`READONLY ${i}`);
  at.now = 60_000;
  fail('OOM again');
  expect(lines).toEqual([
    "warn RL_DRIVER_UNAVAILABLE: the driver 'redis' failed: OOM command 0 not allowed",
    "warn RL_DRIVER_UNAVAILABLE: the driver 'redis' failed: READONLY 0",
    "warn RL_DRIVER_UNAVAILABLE: the driver 'redis' failed: OOM again (999 more since the last line)",
  ]);
});

it('writes no passwords, no second line, and no more kinds than it can remember', () => {
  const { log, lines, change } = open();
  change('closed', 'open', 'no answer from redis://:s3cret@cache:6379\nat line 1');
  expect(lines[0]).toContain('redis://…@cache:6379 at line 1');
  for (let i = 0; i < 500; i++) {
    log.driverError({ driver: 'own', error: Object.assign(new Error('x'), { code: `E${i}` }) });
  }
  log.driverError({ driver: 'own', error: 'text' });
  expect(lines).toHaveLength(51);
});
