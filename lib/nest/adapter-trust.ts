import type { HttpServer } from '@nestjs/common';
import type { DiagnosticSink } from '../core/diagnostics.js';

/** Warns where `trustedProxies: 'adapter'` means that any client can choose its own address. */
export function reportAdapterTrust(adapter: HttpServer | undefined, report: DiagnosticSink): void {
  if (adapter === undefined || !trustsEveryone(adapter)) return;
  report({
    code: 'RL_ADAPTER_TRUSTS_EVERYONE',
    message:
      "trustedProxies is 'adapter', and the adapter trusts every peer: any client can name any address as its own. " +
      'Name your proxies, in the adapter or here',
  });
}

function trustsEveryone(adapter: HttpServer): boolean {
  const instance = adapter.getInstance?.() as
    { get?(name: string): unknown; [key: symbol]: { trustProxy?: unknown } | undefined } | undefined;
  if (adapter.getType?.() === 'express') return instance?.get?.('trust proxy') === true;
  const options = Object.getOwnPropertySymbols(instance ?? {}).find(
    (s) => s.description === 'fastify.options',
  );
  return options !== undefined && instance?.[options]?.trustProxy === true;
}
