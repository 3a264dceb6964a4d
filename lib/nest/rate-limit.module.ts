import {
  ConfigurableModuleBuilder,
  Inject,
  Logger,
  Module,
  Scope,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
  type Type,
} from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef, ModulesContainer } from '@nestjs/core';
import type { RateLimiterParts } from '../core/rate-limiter.js';
import { onceEach, type DiagnosticSink } from '../core/diagnostics.js';
import { normalizeAddress } from '../core/address.js';
import { RateLimitConfigError } from '../core/errors.js';
import type { Policy } from '../core/policy.js';
import type { PolicySlot } from '../core/policy-registry.js';
import { engineParts } from '../create-rate-limiter.js';
import { createClientAddress } from '../http/client-address.js';
import { createHeaderWriter } from '../http/rate-limit-headers.js';
import { reportAdapterTrust } from './adapter-trust.js';
import { isIntercepted, named, reportUnboundHandlers } from './binding-check.js';
import { requestedLimiters } from './decorators/inject-limiter.decorator.js';
import { Enforcer } from './enforcer.js';
import { needsInterceptor } from './handler-plan.js';
import { HandlerPlans } from './handler-plans.js';
import { MethodExplorer } from './method-explorer.js';
import { MethodLimits } from './method-limits.js';
import { completeOptions, type CompletedOptions, type RateLimitModuleOptions } from './module-options.js';
import { rateLimitMetadata } from './rate-limit-metadata.js';
import { RateLimitFilter } from './rate-limit.filter.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import { RateLimiterService } from './rate-limiter.service.js';
import { limiterToken, METHOD_LIMITS, RATE_LIMIT_OPTIONS } from './tokens.js';

const ENGINE = Symbol('nestjs-distlimit engine');
const REPORT = Symbol('nestjs-distlimit report');

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<RateLimitModuleOptions>({ moduleName: 'RateLimit' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRateLimitOptions')
    .build();

/** What `forRootAsync` takes: `useFactory`, `useClass` or `useExisting`, with `inject` and `imports`. */
export type RateLimitModuleAsyncOptions = typeof ASYNC_OPTIONS_TYPE;

/** What the class of `useClass` and `useExisting` implements. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): RateLimitModuleOptions | Promise<RateLimitModuleOptions>;
}

const logger = new Logger('RateLimit');

const PROVIDERS: readonly Provider[] = [
  {
    provide: REPORT,
    useFactory: (): DiagnosticSink => onceEach(({ code, message }) => logger.warn(`${code}: ${message}`)),
  },
  {
    provide: RATE_LIMIT_OPTIONS,
    inject: [MODULE_OPTIONS_TOKEN],
    useFactory: completeOptions,
  },
  {
    provide: ENGINE,
    inject: [RATE_LIMIT_OPTIONS, REPORT],
    useFactory: async (options: CompletedOptions, report: DiagnosticSink) => {
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
    },
  },
  {
    provide: RateLimiterService,
    inject: [ENGINE],
    useFactory: (parts: RateLimiterParts) => new RateLimiterService(parts),
  },
  {
    provide: HandlerPlans,
    inject: [ENGINE, RATE_LIMIT_OPTIONS],
    useFactory: ({ registry }: RateLimiterParts, { global }: CompletedOptions) =>
      new HandlerPlans(registry, global),
  },
  { provide: METHOD_LIMITS, useFactory: () => new MethodLimits() },
  {
    provide: Enforcer,
    inject: [RateLimiterService, HandlerPlans, ENGINE, RATE_LIMIT_OPTIONS, REPORT, HttpAdapterHost],
    useFactory: (
      limiter: RateLimiterService,
      plans: HandlerPlans,
      { clock }: RateLimiterParts,
      options: CompletedOptions,
      report: DiagnosticSink,
      adapterHost: HttpAdapterHost,
    ) =>
      new Enforcer({
        limiter,
        plans,
        clock,
        report,
        sources: {
          userOf: options.userOf,
          clientAddress: clientAddressOf(options, report),
          normalize: (address) => normalizeAddress(address, options.ipv6Prefix),
        },
        writeHeaders: createHeaderWriter(options.headers),
        enabled: options.enabled,
        skip: options.skip,
        denied: options.denied,
        adapter: () => adapterHost.httpAdapter,
      }),
  },
  RateLimitGuard,
  RateLimitInterceptor,
  RateLimitFilter,
  {
    provide: MethodExplorer,
    inject: [ModulesContainer],
    useFactory: (m: ModulesContainer) => new MethodExplorer(m),
  },
];

const EXPORTS = [RateLimiterService, METHOD_LIMITS, Enforcer, RateLimitGuard, RateLimitInterceptor];

/** Rate limits for an application. Import it once, in the root module: it is global. */
@Module({})
export class RateLimitModule
  extends ConfigurableModuleClass
  implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown
{
  readonly #moduleRef: ModuleRef;
  readonly #config: ApplicationConfig;

  constructor(
    moduleRef: ModuleRef,
    config: ApplicationConfig,
    @Inject(RATE_LIMIT_OPTIONS) private readonly options: CompletedOptions,
    @Inject(ENGINE) private readonly engine: RateLimiterParts,
    @Inject(REPORT) private readonly report: DiagnosticSink,
    private readonly service: RateLimiterService,
    private readonly plans: HandlerPlans,
    private readonly explorer: MethodExplorer,
    @Inject(METHOD_LIMITS) private readonly methodLimits: MethodLimits,
    guard: RateLimitGuard,
    interceptor: RateLimitInterceptor,
    filter: RateLimitFilter,
  ) {
    super();
    this.#moduleRef = moduleRef;
    this.#config = config;
    this.#compile();
    // Every class is known by now, and no route has been made yet: what is added here comes before the
    // application's own global guards, which an APP_GUARD of an imported module would not.
    config.addGlobalFilter(filter);
    service.vetChanges((slot, candidate) => this.#refuseInterceptor(slot, candidate));
    if (!options.registerGuard) return;
    config.addGlobalGuard(guard);
    if (this.#interceptorNeeded) config.addGlobalInterceptor(interceptor);
    else plans.interceptorBound = false;
  }

  /** @see RateLimitModuleOptions */
  static override forRoot(options: RateLimitModuleOptions = {}): DynamicModule {
    return complete(super.forRoot(options));
  }

  static override forRootAsync(options: RateLimitModuleAsyncOptions): DynamicModule {
    return complete(super.forRootAsync(options));
  }

  /** Nest calls this before any other module's: the module is global. */
  async onModuleInit(): Promise<void> {
    for (const { instance, hostClass, moduleName, method } of this.explorer.limitedMethods()) {
      for (const limited of rateLimitMetadata.limitedMethodsOf(method)) {
        this.methodLimits.register(moduleName, hostClass, limited);
      }
      // What a factory or a value provides got nothing injected.
      const target = instance as { [METHOD_LIMITS]?: MethodLimits } | undefined;
      if (target !== undefined && target !== null) target[METHOD_LIMITS] ??= this.methodLimits;
    }
    const { resolver, observers } = this.options;
    if (resolver !== undefined) this.service.useResolver(await this.#instanceOf(resolver));
    this.engine.observers.add(await Promise.all(observers.map((observer) => this.#instanceOf(observer))));
  }

  onApplicationBootstrap(): void {
    reportUnboundHandlers(this.plans.all(), this.#config, this.report);
    const { httpAdapter } = this.#moduleRef.get(HttpAdapterHost, { strict: false });
    if (this.options.trustedProxies === 'adapter') reportAdapterTrust(httpAdapter, this.report);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.service.close();
  }

  #compile(): void {
    this.methodLimits.start({
      limiter: this.service,
      plans: this.plans,
      clock: this.engine.clock,
      report: this.report,
      warn: (message) => logger.warn(message),
    });
    for (const { moduleName, hostClass, methodName, method } of this.explorer.handlers()) {
      this.plans.compile(moduleName, hostClass, methodName, method);
    }
  }

  get #interceptorNeeded(): boolean {
    return this.plans.all().some((plan) => plan.policies.some((planned) => needsInterceptor(planned)));
  }

  /** Routes are made once: a policy can't start to need the interceptor on a handler that has none. */
  #refuseInterceptor(slot: PolicySlot, candidate: Policy): void {
    const unintercepted = this.plans
      .all()
      .filter(
        (plan) =>
          plan.policies.some((planned) => planned.slot === slot && needsInterceptor(planned, candidate)) &&
          !isIntercepted(plan, this.#config),
      );
    if (unintercepted.length === 0) return;
    throw new RateLimitConfigError({
      code: 'RL_INTERCEPTOR_REQUIRED',
      path: `policies.${slot.name}`,
      expected: `no key that may be undefined, no countIf and no enforceAt: no RateLimitInterceptor was bound to ${named(unintercepted)} at start-up`,
      received: candidate.countIf ?? candidate.options.enforceAt ?? candidate.options.key,
    });
  }

  /** An instance as it is; a class as the application provides it, else made with its dependencies. */
  async #instanceOf<T extends object>(given: T | Type<T>): Promise<T> {
    if (typeof given !== 'function') return given;
    try {
      return this.#moduleRef.get<T>(given, { strict: false });
    } catch {
      return this.#moduleRef.create(given);
    }
  }
}

/** Adds this module's own providers to a definition made by the builder. */
function complete(definition: DynamicModule): DynamicModule {
  const { providers = [] } = definition;
  return {
    ...definition,
    global: true,
    // Read when Nest scans the module: by then every decorator of the application has run.
    get providers() {
      return [...providers, ...PROVIDERS, ...requestedLimiters().map(limiterProvider)];
    },
    get exports() {
      return [...EXPORTS, ...requestedLimiters().map(limiterToken)];
    },
  };
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

function clientAddressOf({ trustedProxies, ipv6Prefix }: CompletedOptions, report: DiagnosticSink) {
  if (trustedProxies === 'adapter') return trustedProxies;
  return createClientAddress({ ...(trustedProxies !== undefined && { trustedProxies }), ipv6Prefix, report });
}
