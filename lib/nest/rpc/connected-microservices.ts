import type { Type } from '@nestjs/common';
import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';

/** As much of Nest's transporters as matters here. One of the application's own need not have it. */
interface Server {
  getHandlers?(): ReadonlyMap<string, unknown>;
}

/**
 * The microservices that an application connects. Nest makes their handlers at once, and asks the application for its global
 * guards then, if the microservice inherits them: nothing else tells.
 */
export class ConnectedMicroservices {
  readonly #modules: ModulesContainer;
  readonly #inheriting = new Set<Server>();
  /** The one that Nest is making handlers of. */
  #current: Server | undefined;
  #someInheritNothing = false;

  constructor(modules: ModulesContainer, config: ApplicationConfig) {
    this.#modules = modules;
    const guards = config.getGlobalGuards.bind(config);
    config.getGlobalGuards = () => {
      if (this.#current !== undefined) this.#inheriting.add(this.#current);
      return guards();
    };
    modules.getRpcTargetRegistry<Server>().subscribe((server) => this.#watch(server));
  }

  /** Whether messages to handlers of a class certainly get nothing global. Handlers made for each message don't tell. */
  getNothingGlobal(handlerClass: Type): boolean {
    if (!this.#someInheritNothing) return false;
    return [...this.#modules.values()]
      .flatMap(({ controllers }) => [...controllers.values()])
      .some((controller) => controller.metatype === handlerClass && controller.isDependencyTreeStatic());
  }

  /** Until what runs now has run: the handlers are there by then, unless they were to be made later. */
  #watch(server: Server): void {
    this.#current = server;
    queueMicrotask(() => {
      if (this.#current === server) this.#current = undefined;
      const hasHandlers = (server.getHandlers?.().size ?? 0) > 0;
      if (hasHandlers && !this.#inheriting.has(server)) this.#someInheritNothing = true;
    });
  }
}
