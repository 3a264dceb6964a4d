import type { Server } from 'node:http';
import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';

export const ADAPTERS = ['express', 'fastify'] as const;
export type AdapterName = (typeof ADAPTERS)[number];

/** A listening application and how to call it. */
export interface RunningApp {
  readonly app: INestApplication;
  /** Headers are sent as they are; the client's address is 127.0.0.1 unless `from` names another loopback one. */
  readonly call: (path: string, init?: RequestInit & { headers?: Record<string, string> }) => Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

const running: INestApplication[] = [];

/** Starts an application on either adapter. Close what a test has started with {@link closeApps}. */
export async function startApp(
  adapter: AdapterName | FastifyAdapter,
  metadata: ModuleMetadata,
  prepare: (app: INestApplication) => void = () => {},
): Promise<RunningApp> {
  const testing = await Test.createTestingModule(metadata).compile();
  const app = testing.createNestApplication(httpAdapterOf(adapter));
  app.useLogger(false);
  prepare(app);
  running.push(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as { port: number };
  return {
    app,
    async call(path, init) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
      return { status: response.status, headers: response.headers, body: await response.text() };
    },
  };
}

export async function closeApps(): Promise<void> {
  for (const app of running.splice(0)) {
    // A client that hung up may have opened a new connection already; the server would wait for its first request.
    (app.getHttpServer() as Server).closeAllConnections();
    await app.close();
  }
}

/** The statuses of so many calls, one after the other. */
export async function statuses(call: () => Promise<Answer>, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push((await call()).status);
  return seen;
}

function httpAdapterOf(adapter: AdapterName | FastifyAdapter): FastifyAdapter | ExpressAdapter {
  if (typeof adapter !== 'string') return adapter;
  return adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter();
}
