import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HybridOptions, RedisSource, RateLimiterStatus } from 'nestjs-distlimit';
import { libraryProcesses, type LibraryProcesses } from './library-processes.js';
import { until } from './redis-servers.js';

export const LIMIT = 100;
const WINDOW_MS = 2_000;
export const HOURLY_LIMIT = 200;
const COOL_OFF_MS = 1_000;
const HEARTBEAT_MS = 300;
export const INSTANCES = 4;
export const SHARE = LIMIT / INSTANCES;

const POLICIES = {
  short: { limit: LIMIT, window: WINDOW_MS, algorithm: 'fixed-window' },
  hourly: { limit: HOURLY_LIMIT, window: 3_600_000, algorithm: 'fixed-window' },
};

/** Everybody's subject; one that is always sent to the same instance; one with a long window. */
const SPREAD = { policy: 'short', subject: 'spread', everyMs: 15 };
const PINNED = { policy: 'short', subject: 'pinned', everyMs: 5 };
const HOURLY = { policy: 'hourly', subject: 'spread', everyMs: 80 };

/** What callers of one instance saw. */
export interface InstanceReport {
  readonly requests: number;
  readonly errors: readonly string[];
  /** Answers that took longer than the deadline, 20 ms and the event loop's lag meanwhile. */
  readonly late: readonly object[];
  readonly slowestMs: number;
  readonly windows: Record<string, Record<string, number>>;
  readonly servedBy: Record<string, number>;
  readonly breaker: readonly { readonly at: number; readonly current: string; readonly reason: string }[];
  readonly status: RateLimiterStatus;
}

/** What the whole fleet let through. */
export interface FleetReport {
  readonly instances: readonly InstanceReport[];
  readonly requests: number;
  readonly errors: readonly string[];
  readonly late: readonly object[];
  readonly slowestMs: number;
  /** By window, in order; what was only partly watched, the first and the last, left out. */
  readonly spread: readonly number[];
  readonly pinned: readonly number[];
  readonly hourly: number;
  readonly breaker: readonly string[];
}

/** An instance of the application, in a process of its own. */
export class Instance {
  constructor(readonly process: ChildProcess) {}

  async tell<T>(command: string, given?: object): Promise<T> {
    const heard = once(this.process, 'message');
    this.process.send({ command, given });
    const [{ answer, error }] = (await heard) as [{ answer: T; error?: string }];
    if (error !== undefined) throw new Error(error);
    return answer;
  }

  status(): Promise<RateLimiterStatus> {
    return this.tell('status');
  }
}

let fleets = 0;

/** Instances that share a Redis, and are sent traffic. */
export class HybridFleet {
  readonly instances: Instance[] = [];
  readonly #processes: LibraryProcesses = libraryProcesses('traffic.mjs');
  readonly #gone: InstanceReport[] = [];
  readonly #prefix = `fleet-${process.pid}-${++fleets}`;

  /** @param redis of each instance by its number */
  constructor(
    readonly redis: (instance: number) => RedisSource,
    readonly hybrid: HybridOptions = {},
  ) {}

  static async open(redis: (instance: number) => RedisSource, hybrid?: HybridOptions): Promise<HybridFleet> {
    const fleet = new HybridFleet(redis, hybrid);
    await Promise.all(Array.from({ length: INSTANCES }, () => fleet.start()));
    await fleet.knowsAll(INSTANCES);
    return fleet;
  }

  async start(): Promise<Instance> {
    const instance = new Instance(this.#processes.start());
    const number = this.instances.push(instance) - 1;
    await instance.tell('open', {
      redis: this.redis(number),
      prefix: this.#prefix,
      hybrid: { coolOffMs: COOL_OFF_MS, heartbeatMs: HEARTBEAT_MS, ...this.hybrid },
      policies: POLICIES,
    });
    return instance;
  }

  /** Every instance knows how many there are, and asks Redis. */
  async knowsAll(size: number): Promise<void> {
    await until(async () => {
      const all = await Promise.all(this.instances.map((instance) => instance.status()));
      return all.every(({ breaker, fleetSize }) => breaker === 'closed' && fleetSize === size);
    });
  }

  /** Traffic before, during and after a fault. It begins with a window: so what happens when is the same every time. */
  async through(fault: () => Promise<void>, afterMs = 5_000): Promise<FleetReport> {
    await sleep(WINDOW_MS - (Date.now() % WINDOW_MS) + 50);
    await Promise.all(this.instances.map((instance) => this.send(instance)));
    await sleep(2_700);
    await fault();
    await sleep(afterMs);
    return this.#finish();
  }

  /** Sends an instance its part of the traffic. */
  send(instance: Instance): Promise<void> {
    const isFirst = instance === this.instances[0];
    return instance.tell('traffic', isFirst ? [SPREAD, PINNED, HOURLY] : [SPREAD, HOURLY]);
  }

  /** Ends an instance's process. What it let through until then counts. */
  async kill(instance: number): Promise<void> {
    const [gone] = this.instances.splice(instance, 1);
    this.#gone.push(await gone!.tell<InstanceReport>('finish'));
    gone!.process.kill('SIGKILL');
  }

  async #finish(): Promise<FleetReport> {
    const instances = [
      ...(await Promise.all(this.instances.map((instance) => instance.tell<InstanceReport>('finish')))),
      ...this.#gone,
    ];
    return {
      instances,
      requests: instances.reduce((sum, { requests }) => sum + requests, 0),
      errors: instances.flatMap(({ errors }) => errors),
      late: instances.flatMap(({ late }) => late),
      slowestMs: Math.round(Math.max(...instances.map(({ slowestMs }) => slowestMs))),
      spread: windowsOf(instances, 'short spread'),
      pinned: windowsOf(instances, 'short pinned'),
      hourly: sum(Object.values(countsOf(instances, 'hourly spread'))),
      breaker: instances.map(({ breaker }) => breaker.map(({ current }) => current).join(' ')),
    };
  }

  stop(): void {
    this.#processes.stop();
  }
}

function countsOf(instances: readonly InstanceReport[], stream: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { windows } of instances) {
    for (const [window, count] of Object.entries(windows[stream] ?? {}))
      counts[window] = (counts[window] ?? 0) + count;
  }
  return counts;
}

function windowsOf(instances: readonly InstanceReport[], stream: string): number[] {
  const entries = Object.entries(countsOf(instances, stream)).sort(([a], [b]) => Number(a) - Number(b));
  return entries.slice(0, -1).map(([, count]) => count);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
