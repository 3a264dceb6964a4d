import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, until } from './redis-servers.js';

const ALERTS = fileURLToPath(new URL('../../dashboards/alerts.yml', import.meta.url));

/** One series of an answer: its labels, and values with their times in seconds. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, number])[];
}

interface Answer<T> {
  readonly status: string;
  readonly error?: string;
  readonly data: T;
}

type RawSeries = { metric: Record<string, string>; values?: [number, string][]; value?: [number, string] };

/** A real Prometheus, which scrapes one application each second, and has the alert rules of the package. */
export class PrometheusServer {
  readonly #process: ChildProcess;
  readonly #directory: string;
  readonly #url: string;

  private constructor(child: ChildProcess, directory: string, url: string) {
    this.#process = child;
    this.#directory = directory;
    this.#url = url;
  }

  /** @param target host and port of the application */
  static async start(target: string): Promise<PrometheusServer> {
    const directory = mkdtempSync(join(tmpdir(), 'distlimit-prometheus-'));
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [ALERTS],
      scrape_configs: [{ job_name: 'sample', static_configs: [{ targets: [target] }] }],
    };
    const file = join(directory, 'prometheus.yml');
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify(config));
    const address = `127.0.0.1:${await freePort()}`;
    const options = [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ];
    const child = spawn('prometheus', options, { stdio: ['ignore', 'ignore', 'inherit'] });
    const server = new PrometheusServer(child, directory, `http://${address}`);
    await until(async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok === true);
    return server;
  }

  /** The sum of what an expression is now; `undefined` where it is nothing. */
  async now(expr: string): Promise<number | undefined> {
    const { result } = await this.#ask<{ result: RawSeries[] }>('query', { query: expr });
    return result.length === 0 ? undefined : result.reduce((sum, { value }) => sum + Number(value?.[1]), 0);
  }

  /** What an expression was, each second. */
  async range(expr: string, start: number, end: number): Promise<Series[]> {
    const parameters = { query: expr, start: String(start), end: String(end), step: '1' };
    const { result } = await this.#ask<{ result: RawSeries[] }>('query_range', parameters);
    return result.map(({ metric, values = [] }) => ({
      metric,
      values: values.map(([at, value]) => [at, Number(value)] as const),
    }));
  }

  /** Names of alerts by state: `pending`, `firing`. */
  async alerts(): Promise<{ readonly state: string; readonly name: string }[]> {
    const { alerts } = await this.#ask<{ alerts: { state: string; labels: Record<string, string> }[] }>(
      'alerts',
      {},
    );
    return alerts.map(({ state, labels }) => ({ state, name: labels['alertname'] ?? '' }));
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #ask<T>(what: string, parameters: Record<string, string>): Promise<T> {
    const response = await fetch(`${this.#url}/api/v1/${what}?${new URLSearchParams(parameters).toString()}`);
    const answer = (await response.json()) as Answer<T>;
    if (answer.status !== 'success') throw new Error(`${parameters['query']}: ${answer.error}`);
    return answer.data;
  }
}
