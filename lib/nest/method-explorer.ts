import type { Type } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { RateLimitConfigError } from '../core/errors.js';
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
  readonly #scanner = new MetadataScanner();

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
    const prototype = hostClass.prototype as Record<string, unknown>;
    for (const methodName of this.#scanner.getAllMethodNames(prototype)) {
      const method = prototype[methodName];
      if (typeof method === 'function' && wanted(method)) {
        yield { moduleName, hostClass: hostClass as Type, methodName, method };
      }
    }
  }
}

/** The class of an instance that Nest holds; request-scoped providers have none yet. */
function classOf(instance: unknown): unknown {
  if (typeof instance !== 'object' || instance === null) return undefined;
  return (Object.getPrototypeOf(instance) as { constructor?: unknown } | null)?.constructor;
}

function isRoute(method: Method): boolean {
  return Reflect.hasMetadata(NEST_METADATA.path, method);
}

function isDecorated(method: Method): boolean {
  return rateLimitMetadata.usesOf(method) !== undefined;
}

function isLimited(method: Method): boolean {
  return rateLimitMetadata.limitedMethodsOf(method).length > 0;
}
