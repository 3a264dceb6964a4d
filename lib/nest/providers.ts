import { Logger, Scope, type Provider } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { defined } from '../core/defined.js';
import { onceEach, type Diagnostic, type DiagnosticSink } from '../core/diagnostics.js';
import { LimiterEngine, type LimiterEngineParts } from '../core/limiter-engine.js';
import type { PolicyRegistry } from '../core/policy-registry.js';
import { PolicySources } from '../core/policy-sources.js';
import { DEFAULT_PREFIX } from '../core/storage-key.js';
import { engineParts } from '../engine-parts.js';
import { requestedLimiters } from './decorators/inject-limiter.decorator.js';
import { Enforcer } from './enforcer.js';
import { HandlerPlans } from './handler-plans.js';
import { MethodExplorer } from './method-explorer.js';
import { MethodLimits } from './method-limits.js';
import { completeOptions, type CompletedOptions } from './module-options.js';
import { OperatorLog } from './operator-log.js';
import { RateLimitFilter } from './rate-limit.filter.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import { RateLimiterService } from './rate-limiter.service.js';
import { ConnectedMicroservices } from './rpc/connected-microservices.js';
import {
  ENGINE_PARTS,
  limiterToken,
  METHOD_LIMITS,
  RATE_LIMIT_OPTIONS,
  REPORT,
  TRANSPORTS,
} from './tokens.js';
import { transportsOf, type TransportOf } from './transports.js';

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
    {
      provide: ConnectedMicroservices,
      inject: [ModulesContainer, ApplicationConfig],
      useFactory: (modules: ModulesContainer, config: ApplicationConfig) =>
        new ConnectedMicroservices(modules, config),
    },
    { provide: METHOD_LIMITS, useFactory: () => new MethodLimits() },
    {
      provide: TRANSPORTS,
      inject: [RATE_LIMIT_OPTIONS, ENGINE_PARTS, REPORT, HttpAdapterHost, ApplicationConfig],
      useFactory: transportsOf,
    },
    {
      provide: Enforcer,
      inject: [LimiterEngine, HandlerPlans, TRANSPORTS, RATE_LIMIT_OPTIONS, REPORT],
      useFactory: (
        engine: LimiterEngine,
        plans: HandlerPlans,
        transportOf: TransportOf,
        { enabled, skip, denied }: CompletedOptions,
        report: DiagnosticSink,
      ) => new Enforcer({ engine, plans, transportOf, report, enabled, skip, denied }),
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
  const given = defined({ redis, prefix, driver, memory, hybrid, hashKeys, clock });
  // There from the start: an application may begin without Redis.
  const observers = [new OperatorLog(logger)];
  const define = (registry: PolicyRegistry) => {
    for (const [name, policy] of Object.entries(options.policies ?? {})) {
      registry.define(name, policy, `policies.${name}`);
    }
  };
  const sources = new PolicySources(options.sources, tellOfSources);
  await sources.open({ redis, prefix: prefix ?? DEFAULT_PREFIX });
  try {
    const parts = engineParts({ ...given, enabled, observers }, report, define, sources);
    await parts.driver.started;
    return parts;
  } catch (error) {
    await sources.close();
    throw error;
  }
}

/** What happens to sources may happen again, and is told each time. */
function tellOfSources({ code, message }: Diagnostic): void {
  if (code === 'RL_SOURCE_CHANGED') logger.log(`${code}: ${message}`);
  else logger.warn(`${code}: ${message}`);
}

/** Transient, so that a limiter which another application of the process asked for is not made here. */
function limiterProvider(name: string): Provider {
  return {
    provide: limiterToken(name),
    scope: Scope.TRANSIENT,
    inject: [RateLimiterService, LimiterEngine],
    useFactory: async (service: RateLimiterService, engine: LimiterEngine) => {
      try {
        return service.limiter(name);
      } catch (error) {
        // The application will not start: nobody else would let go of what was opened.
        await engine.close();
        throw error;
      }
    },
  };
}
