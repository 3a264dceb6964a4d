import { Logger, Scope, type HttpServer, type Provider } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { normalizeAddress } from '../core/address.js';
import type { Clock } from '../core/clock.js';
import { onceEach, type DiagnosticSink } from '../core/diagnostics.js';
import { LimiterEngine, type LimiterEngineParts } from '../core/limiter-engine.js';
import { engineParts } from '../create-rate-limiter.js';
import { createClientAddress } from '../http/client-address.js';
import { createHeaderWriter } from '../http/rate-limit-headers.js';
import type { CallTransport } from './call-transport.js';
import { requestedLimiters } from './decorators/inject-limiter.decorator.js';
import { Enforcer } from './enforcer.js';
import { HandlerPlans } from './handler-plans.js';
import type { CallSources } from './http/http-call.js';
import { HttpTransport } from './http/http-transport.js';
import { MethodExplorer } from './method-explorer.js';
import { MethodLimits } from './method-limits.js';
import { completeOptions, type CompletedOptions } from './module-options.js';
import { NonHttpTransport } from './non-http-transport.js';
import { RateLimitFilter } from './rate-limit.filter.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import { RateLimiterService } from './rate-limiter.service.js';
import { ENGINE_PARTS, limiterToken, METHOD_LIMITS, RATE_LIMIT_OPTIONS, REPORT } from './tokens.js';

export const logger = new Logger('RateLimit');

/** @param optionsToken where `forRoot` and `forRootAsync` put what they were given */
export function providersOf(optionsToken: string | symbol): Provider[] {
  return [
    {
      provide: REPORT,
      useFactory: (): DiagnosticSink => onceEach(({ code, message }) => logger.warn(`${code}: ${message}`)),
    },
    { provide: RATE_LIMIT_OPTIONS, inject: [optionsToken], useFactory: completeOptions },
    { provide: ENGINE_PARTS, inject: [RATE_LIMIT_OPTIONS, REPORT], useFactory: partsOf },
    {
      provide: LimiterEngine,
      inject: [ENGINE_PARTS],
      useFactory: (parts: LimiterEngineParts) => new LimiterEngine(parts),
    },
    {
      provide: RateLimiterService,
      inject: [LimiterEngine],
      useFactory: (engine: LimiterEngine) => new RateLimiterService(engine),
    },
    {
      provide: HandlerPlans,
      inject: [ENGINE_PARTS, RATE_LIMIT_OPTIONS],
      useFactory: ({ registry }: LimiterEngineParts, { global }: CompletedOptions) =>
        new HandlerPlans(registry, global),
    },
    { provide: METHOD_LIMITS, useFactory: () => new MethodLimits() },
    {
      provide: Enforcer,
      inject: [LimiterEngine, HandlerPlans, ENGINE_PARTS, RATE_LIMIT_OPTIONS, REPORT, HttpAdapterHost],
      useFactory: (
        engine: LimiterEngine,
        plans: HandlerPlans,
        { clock }: LimiterEngineParts,
        options: CompletedOptions,
        report: DiagnosticSink,
        adapterHost: HttpAdapterHost,
      ) => {
        const { enabled, skip, denied } = options;
        const transportOf = transportsOf(options, clock, report, () => adapterHost.httpAdapter);
        return new Enforcer({ engine, plans, transportOf, report, enabled, skip, denied });
      },
    },
    RateLimitGuard,
    RateLimitInterceptor,
    RateLimitFilter,
    {
      provide: MethodExplorer,
      inject: [ModulesContainer],
      useFactory: (modules: ModulesContainer) => new MethodExplorer(modules),
    },
    ...requestedLimiters().map(limiterProvider),
  ];
}

/** What other modules may inject; the guard and the interceptor need the enforcer where they are bound by hand. */
export function exportsOf() {
  return [
    RateLimiterService,
    METHOD_LIMITS,
    Enforcer,
    RateLimitGuard,
    RateLimitInterceptor,
    ...requestedLimiters().map(limiterToken),
  ];
}

async function partsOf(options: CompletedOptions, report: DiagnosticSink): Promise<LimiterEngineParts> {
  const { redis, prefix, driver, memory, hybrid, hashKeys, enabled, clock } = options;
  const given = {
    ...(redis !== undefined && { redis }),
    ...(prefix !== undefined && { prefix }),
    ...(driver !== undefined && { driver }),
    ...(memory !== undefined && { memory }),
    ...(hybrid !== undefined && { hybrid }),
    ...(hashKeys !== undefined && { hashKeys }),
    ...(clock !== undefined && { clock }),
  };
  const parts = engineParts({ ...given, enabled }, report, (registry) => {
    for (const [name, policy] of Object.entries(options.policies ?? {})) {
      registry.define(name, policy, `policies.${name}`);
    }
  });
  await parts.driver.started;
  return parts;
}

function transportsOf(
  options: CompletedOptions,
  clock: Clock,
  report: DiagnosticSink,
  adapter: () => HttpServer | undefined,
): (type: string) => CallTransport {
  const sources = {
    userOf: options.userOf,
    clientAddress: clientAddressOf(options, report),
    normalize: (address: string) => normalizeAddress(address, options.ipv6Prefix),
  };
  const writeHeaders = createHeaderWriter(options.headers);
  const http = new HttpTransport({ sources, writeHeaders, clock, adapter });
  const other = new NonHttpTransport(clock, report);
  return (type) => (type === 'http' ? http : other);
}

function clientAddressOf(
  { trustedProxies, ipv6Prefix }: CompletedOptions,
  report: DiagnosticSink,
): CallSources['clientAddress'] {
  if (trustedProxies === 'adapter') return trustedProxies;
  return createClientAddress({ ...(trustedProxies !== undefined && { trustedProxies }), ipv6Prefix, report });
}

/** Transient, so that a limiter which another application of the process asked for is not made here. */
function limiterProvider(name: string): Provider {
  return {
    provide: limiterToken(name),
    scope: Scope.TRANSIENT,
    inject: [RateLimiterService],
    useFactory: (service: RateLimiterService) => service.limiter(name),
  };
}
