import type { HttpServer } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost } from '@nestjs/core';
import { normalizeAddress } from '../core/address.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import type { LimiterEngineParts } from '../core/limiter-engine.js';
import { createClientAddress } from '../http/client-address.js';
import { createHeaderWriter } from '../http/rate-limit-headers.js';
import type { CallSources } from './call-sources.js';
import type { CallTransport } from './call-transport.js';
import { HttpTransport } from './http/http-transport.js';
import type { CompletedOptions } from './module-options.js';
import { NonHttpTransport } from './non-http-transport.js';
import { UpgradeRequests } from './ws/upgrade-requests.js';
import { WsTransport } from './ws/ws-transport.js';

/** How calls of a context's type are told, held and ended. */
export type TransportOf = (type: string) => CallTransport;

export function transportsOf(
  options: CompletedOptions,
  { clock }: LimiterEngineParts,
  report: DiagnosticSink,
  adapterHost: HttpAdapterHost,
  config: ApplicationConfig,
): TransportOf {
  const sources = sourcesOf(options, report);
  const upgrades = new UpgradeRequests();
  upgrades.watch(config);
  const adapter = (): HttpServer | undefined => adapterHost.httpAdapter;
  const writeHeaders = createHeaderWriter(options.headers);
  const known: Record<string, CallTransport> = {
    http: new HttpTransport({ sources, writeHeaders, clock, adapter }),
    ws: new WsTransport({ sources, upgrades, clock }),
  };
  const other = new NonHttpTransport(clock, report);
  return (type) => known[type] ?? other;
}

function sourcesOf(
  { userOf, trustedProxies, ipv6Prefix }: CompletedOptions,
  report: DiagnosticSink,
): CallSources {
  const ofAdapter = trustedProxies === 'adapter';
  const socketAddress = createClientAddress({
    ...(trustedProxies !== undefined && !ofAdapter && { trustedProxies }),
    ipv6Prefix,
    report: ofAdapter ? ({ code }) => report({ code, message: ADAPTER_SEES_REQUESTS_ONLY }) : report,
  });
  return {
    userOf,
    clientAddress: ofAdapter ? trustedProxies : socketAddress,
    socketAddress,
    normalize: (address) => normalizeAddress(address, ipv6Prefix),
  };
}

const ADAPTER_SEES_REQUESTS_ONLY =
  "a connection carried a forwarding header, which is ignored because `trustedProxies: 'adapter'` reads HTTP requests " +
  'only: behind a proxy all clients of other transports share their limits. Set `trustedProxies` to your proxies';
