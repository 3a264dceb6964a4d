import type { Type } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { RateLimitConfigError } from '../core/errors.js';
import { andThen } from '../core/maybe-promise.js';
import { rateLimitMetadata } from './rate-limit-metadata.js';
import { NEST_METADATA } from './nest-metadata.js';

type Method = Function;

/** A method of a class that Nest knows. */
export interface FoundMethod {
  readonly moduleName: string;
  readonly hostClass: Type;
  readonly methodName: string;
  readonly method: Method;
}

/** Finds an application's handlers and limited methods, in the order in which it declares them. */
export class MethodExplorer {
  readonly #modules: ModulesContainer;
  readonly #limitedClasses = new WeakMap<object, boolean>();

  constructor(modules: ModulesContainer) {
    this.#modules = modules;
  }

  /** @throws RateLimitConfigError where the application imports the module more than once, with different options */
  requireOnlyOne(moduleClass: Type): void {
    const count = [...this.#modules.values()].filter(({ metatype }) => metatype === moduleClass).length;
    if (count <= 1) return;
    throw new RateLimitConfigError({
      code: 'RL_DUPLICATE_MODULE',
      path: 'imports',
      expected: `one ${moduleClass.name}.forRoot() or forRootAsync() in an application`,
      received: count,
    });
  }

  /** Routes of controllers, and whatever carries `@RateLimit()`. */
  *handlers(): Generator<FoundMethod> {
    for (const module of this.#modules.values()) {
      const moduleName = module.metatype.name;
      for (const { metatype } of module.controllers.values()) {
        yield* this.#methodsOf(moduleName, metatype, (m) => isRoute(m) || isDecorated(m));
      }
      for (const { metatype } of module.providers.values())
        yield* this.#methodsOf(moduleName, metatype, isDecorated);
    }
  }

  /** Whatever carries `@CommonLimit()`, also on classes that only a factory or a value shows. */
  *limitedMethods(): Generator<FoundMethod & { readonly instance: unknown }> {
    for (const module of this.#modules.values()) {
      for (const { metatype, instance } of [...module.controllers.values(), ...module.providers.values()]) {
        const hostClass = classOf(instance) ?? metatype;
        for (const found of this.#methodsOf(module.metatype.name, hostClass, isLimited))
          yield { ...found, instance };
      }
    }
  }

  /** Whatever carries `@RateLimit()` and is no handler of anything: no guard ever sees it. */
  *strayMethods(): Generator<FoundMethod> {
    for (const module of this.#modules.values()) {
      for (const { metatype } of [...module.controllers.values(), ...module.providers.values()]) {
        yield* this.#methodsOf(module.metatype.name, metatype, (m) => isDecorated(m) && !isHandler(m));
      }
    }
  }

  /**
   * Has `bind` called with what factories make from now on, where it has limited methods. Of those that make one for each request, or for
   * whoever injects it, Nest keeps no instance.
   */
  watchFactories(bind: (instance: unknown) => void): void {
    for (const module of this.#modules.values()) {
      for (const provider of module.providers.values()) {
        const { inject, metatype: factory } = provider as {
          inject?: unknown;
          metatype: ((...dependencies: unknown[]) => unknown) | null;
        };
        // What is injected by the value of `inject` is made by a factory; a class has none.
        if (inject === undefined || inject === null || typeof factory !== 'function') continue;
        provider.metatype = (...dependencies: unknown[]) =>
          andThen(factory(...dependencies), (instance) => {
            if (this.#isLimited(instance)) bind(instance);
            return instance;
          });
      }
    }
  }

  #isLimited(instance: unknown): boolean {
    const hostClass = classOf(instance);
    if (typeof hostClass !== 'function') return false;
    let limited = this.#limitedClasses.get(hostClass);
    if (limited === undefined) {
      limited = [...methodsIn(hostClass.prototype as object).values()].some(isLimited);
      this.#limitedClasses.set(hostClass, limited);
    }
    return limited;
  }

  *#methodsOf(
    moduleName: string,
    hostClass: unknown,
    wanted: (method: Method) => boolean,
  ): Generator<FoundMethod> {
    if (
      typeof hostClass !== 'function' ||
      typeof hostClass.prototype !== 'object' ||
      hostClass.prototype === null
    )
      return;
    for (const [key, method] of methodsIn(hostClass.prototype as object)) {
      if (wanted(method)) yield { moduleName, hostClass: hostClass as Type, methodName: String(key), method };
    }
  }
}

/** The methods of a prototype and of those it inherits from, the nearest first; also those named by a symbol. */
function methodsIn(prototype: object): Map<string | symbol, Method> {
  const methods = new Map<string | symbol, Method>();
  for (
    let at: object | null = prototype;
    at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const key of Reflect.ownKeys(at)) {
      const value: unknown = Object.getOwnPropertyDescriptor(at, key)?.value;
      if (key !== 'constructor' && typeof value === 'function' && !methods.has(key)) methods.set(key, value);
    }
  }
  return methods;
}

/** The class of an instance that Nest holds; request-scoped providers have none yet. */
function classOf(instance: unknown): unknown {
  if (typeof instance !== 'object' || instance === null) return undefined;
  try {
    return (Object.getPrototypeOf(instance) as { constructor?: unknown } | null)?.constructor;
  } catch {
    // A proxy may refuse to tell.
    return undefined;
  }
}

function isRoute(method: Method): boolean {
  return Reflect.hasMetadata(NEST_METADATA.path, method);
}

/** Whether a library has marked a method as something that it calls. */
function isHandler(method: Method): boolean {
  return Reflect.getMetadataKeys(method).some(
    (key) => !String(key).startsWith('design:') && !rateLimitMetadata.isOwn(key),
  );
}

function isDecorated(method: Method): boolean {
  return rateLimitMetadata.usesOf(method) !== undefined;
}

function isLimited(method: Method): boolean {
  return rateLimitMetadata.limitedMethodsOf(method).length > 0;
}
