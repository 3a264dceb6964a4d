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
import type { RateLimitObserver } from '../core/observer.js';
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
  /** Observers that were made here, and that nobody else can close. */
  readonly #madeObservers: RateLimitObserver[] = [];
  /** Known when the application has started. */
  #gatewaysGetGlobal = true;

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
    try {
      this.#bind(guard, interceptor, filter);
    } catch (error) {
      // Nest makes no instance, so it will not shut this down: what was opened would stay open.
      void engine.close();
      throw error;
    }
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
    try {
      await this.#bindInstances();
    } catch (error) {
      // A start that failed is not shut down by everybody.
      await this.#engine.close();
      throw error;
    }
  }

  async onApplicationBootstrap(): Promise<void> {
    this.#parts.registry.started();
    const plans = this.#plans.all();
    this.#gatewaysGetGlobal = !plans.some(isOfGateway) || (await gatewaysGetGlobalGuards());
    reportUnboundHandlers(plans, this.#config, this.#report, this.#getsGlobal);
    reportStrayMethods(this.#explorer.strayMethods(), this.#report);
    const { httpAdapter } = this.#moduleRef.get(HttpAdapterHost, { strict: false });
    if (this.#options.trustedProxies === 'adapter') reportAdapterTrust(httpAdapter, this.#report);
  }

  async onApplicationShutdown(): Promise<void> {
    this.#methodLimits.release();
    await this.#engine.close();
    for (const observer of this.#madeObservers) this.#parts.observers.close(observer);
  }

  #bind(guard: RateLimitGuard, interceptor: RateLimitInterceptor, filter: RateLimitFilter): void {
    this.#explorer.requireOnlyOne(RateLimitModule);
    this.#explorer.watchFactories((instance) => this.#methodLimits.bindMade(instance));
    this.#compile();
    // Every class is known by now, and no route has been made yet: what is added here comes before the
    // application's own global guards, which an APP_GUARD of an imported module would not.
    this.#config.addGlobalFilter(filter);
    this.#engine.validateChanges((slot, candidate) =>
      refuseWithoutInterceptor(this.#plans.all(), this.#config, slot, candidate, this.#getsGlobal),
    );
    if (!this.#options.registerGuard) return;
    this.#config.addGlobalGuard(guard);
    if (this.#interceptorNeeded) this.#config.addGlobalInterceptor(interceptor);
    else this.#plans.interceptorBound = false;
  }

  async #bindInstances(): Promise<void> {
    for (const { instance, hostClass, moduleName, method } of this.#explorer.limitedMethods()) {
      for (const limited of rateLimitMetadata.limitedMethodsOf(method)) {
        this.#methodLimits.register(moduleName, hostClass, limited);
      }
      this.#methodLimits.bind(instance);
    }
    const { resolver, observers } = this.#options;
    if (resolver !== undefined) this.#engine.useResolver((await this.#instanceOf(resolver)).instance);
    for (const observer of observers) {
      const { instance, isOurs } = await this.#instanceOf(observer);
      this.#parts.observers.add([instance]);
      if (isOurs) this.#madeObservers.push(instance);
    }
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

  /** Whether Nest gives a handler what is bound globally. */
  readonly #getsGlobal = (plan: HandlerPlan): boolean =>
    (this.#gatewaysGetGlobal || !isOfGateway(plan)) &&
    !(isOfMessages(plan) && this.#microservices.getNothingGlobal(plan.handlerClass));

  get #interceptorNeeded(): boolean {
    return this.#plans.all().some((plan) => plan.policies.some((planned) => needsInterceptor(planned)));
  }

  /** An instance as it is; a class as the application provides it, else made with its dependencies. */
  async #instanceOf<T extends object>(given: T | Type<T>): Promise<{ instance: T; isOurs: boolean }> {
    if (typeof given !== 'function') return { instance: given, isOurs: false };
    try {
      return { instance: this.#moduleRef.get<T>(given, { strict: false }), isOurs: false };
    } catch {
      return { instance: await this.#moduleRef.create(given), isOurs: true };
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
