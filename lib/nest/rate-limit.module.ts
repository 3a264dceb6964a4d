import {
  ConfigurableModuleBuilder,
  Inject,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Type,
} from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { LimiterEngine, type LimiterEngineParts } from '../core/limiter-engine.js';
import { reportAdapterTrust } from './adapter-trust.js';
import {
  isOfGateway,
  isOfMessages,
  refuseWithoutInterceptor,
  reportStrayMethods,
  reportUnboundHandlers,
} from './binding-check.js';
import { needsInterceptor, type HandlerPlan } from './handler-plan.js';
import { HandlerPlans } from './handler-plans.js';
import { MethodExplorer } from './method-explorer.js';
import { MethodLimits } from './method-limits.js';
import type { CompletedOptions, RateLimitModuleOptions } from './module-options.js';
import { exportsOf, logger, providersOf } from './providers.js';
import { rateLimitMetadata } from './rate-limit-metadata.js';
import { RateLimitFilter } from './rate-limit.filter.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import { ConnectedMicroservices } from './rpc/connected-microservices.js';
import { gatewaysGetGlobalGuards } from './ws/websockets-peer.js';
import { ENGINE_PARTS, METHOD_LIMITS, RATE_LIMIT_OPTIONS, REPORT } from './tokens.js';

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

/** Rate limits for an application. Import it once, in the root module: it is global. */
@Module({})
export class RateLimitModule
  extends ConfigurableModuleClass
  implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown
{
  readonly #moduleRef: ModuleRef;
  readonly #config: ApplicationConfig;
  readonly #options: CompletedOptions;
  readonly #parts: LimiterEngineParts;
  readonly #engine: LimiterEngine;
  readonly #plans: HandlerPlans;
  readonly #explorer: MethodExplorer;
  readonly #microservices: ConnectedMicroservices;
  readonly #methodLimits: MethodLimits;
  readonly #report: DiagnosticSink;

  /** @internal */
  constructor(
    moduleRef: ModuleRef,
    config: ApplicationConfig,
    @Inject(RATE_LIMIT_OPTIONS) options: CompletedOptions,
    @Inject(ENGINE_PARTS) parts: LimiterEngineParts,
    @Inject(REPORT) report: DiagnosticSink,
    @Inject(METHOD_LIMITS) methodLimits: MethodLimits,
    engine: LimiterEngine,
    plans: HandlerPlans,
    explorer: MethodExplorer,
    microservices: ConnectedMicroservices,
    guard: RateLimitGuard,
    interceptor: RateLimitInterceptor,
    filter: RateLimitFilter,
  ) {
    super();
    this.#moduleRef = moduleRef;
    this.#config = config;
    this.#options = options;
    this.#parts = parts;
    this.#engine = engine;
    this.#plans = plans;
    this.#explorer = explorer;
    this.#microservices = microservices;
    this.#methodLimits = methodLimits;
    this.#report = report;
    explorer.requireOnlyOne(RateLimitModule);
    explorer.watchFactories((instance) => methodLimits.bindMade(instance));
    this.#compile();
    // Every class is known by now, and no route has been made yet: what is added here comes before the
    // application's own global guards, which an APP_GUARD of an imported module would not.
    config.addGlobalFilter(filter);
    engine.validateChanges((slot, candidate) =>
      refuseWithoutInterceptor(plans.all(), config, slot, candidate),
    );
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
    for (const { instance, hostClass, moduleName, method } of this.#explorer.limitedMethods()) {
      for (const limited of rateLimitMetadata.limitedMethodsOf(method)) {
        this.#methodLimits.register(moduleName, hostClass, limited);
      }
      this.#methodLimits.bind(instance);
    }
    const { resolver, observers } = this.#options;
    if (resolver !== undefined) this.#engine.useResolver(await this.#instanceOf(resolver));
    this.#parts.observers.add(await Promise.all(observers.map((observer) => this.#instanceOf(observer))));
  }

  async onApplicationBootstrap(): Promise<void> {
    this.#parts.registry.started();
    const plans = this.#plans.all();
    const reachesGateways = !plans.some(isOfGateway) || (await gatewaysGetGlobalGuards());
    const getsGlobal = (plan: HandlerPlan) =>
      (reachesGateways || !isOfGateway(plan)) &&
      !(isOfMessages(plan) && this.#microservices.getNothingGlobal(plan.handlerClass));
    reportUnboundHandlers(plans, this.#config, this.#report, getsGlobal);
    reportStrayMethods(this.#explorer.strayMethods(), this.#report);
    const { httpAdapter } = this.#moduleRef.get(HttpAdapterHost, { strict: false });
    if (this.#options.trustedProxies === 'adapter') reportAdapterTrust(httpAdapter, this.#report);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#methodLimits.release();
    await this.#engine.close();
  }

  #compile(): void {
    this.#methodLimits.start({
      engine: this.#engine,
      plans: this.#plans,
      clock: this.#parts.clock,
      report: this.#report,
      warn: (message) => logger.warn(message),
    });
    for (const { moduleName, hostClass, methodName, method } of this.#explorer.handlers()) {
      this.#plans.compile(moduleName, hostClass, methodName, method);
    }
  }

  get #interceptorNeeded(): boolean {
    return this.#plans.all().some((plan) => plan.policies.some((planned) => needsInterceptor(planned)));
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
      return [...providers, ...providersOf(MODULE_OPTIONS_TOKEN)];
    },
    get exports() {
      return exportsOf();
    },
  };
}
