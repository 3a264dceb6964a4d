import type { Type } from '@nestjs/common';
import type { CallContext } from '../core/call-context.js';
import { requireCost, type ChargeRequest } from '../core/charge-request.js';
import type { Clock } from '../core/clock.js';
import { defined } from '../core/defined.js';
import type { DiagnosticSink } from '../core/diagnostics.js';
import { enforcementSuspended } from '../core/enforcement.js';
import { RateLimitConfigError, RateLimitError } from '../core/errors.js';
import { holdUntil } from '../core/hold-until.js';
import type { LimiterEngine } from '../core/limiter-engine.js';
import type { KeyPart } from '../core/policy.js';
import { requireAffordable } from '../core/policy-completion.js';
import type { PolicySlot } from '../core/policy-registry.js';
import { boundSubject, subjectOf } from '../core/subject.js';
import type { Verdict } from '../core/verdict.js';
import { textOf } from './call-subject.js';
import { chargeFor } from './charge-for.js';
import { countOutcome } from './counted-outcome.js';
import { denialOf } from './denial.js';
import type { PlannedPolicy } from './handler-plan.js';
import type { HandlerPlans } from './handler-plans.js';
import type { LimitedMethod, RateLimitUse } from './rate-limit-metadata.js';
import { METHOD_LIMITS } from './tokens.js';

/** What the method aspect is made of. */
export interface MethodLimitsParts {
  readonly engine: LimiterEngine;
  readonly plans: HandlerPlans;
  readonly clock: Clock;
  readonly report: DiagnosticSink;
  /** Where skipped calls are told of. */
  readonly warn: (message: string) => void;
}

/** A method on one class: where its policy is, and what was told last of calls that were skipped. */
interface Site {
  readonly planned: PlannedPolicy;
  readonly place: string;
  told: { readonly subject: string; readonly at: number; isOver: boolean } | undefined;
}

/** Others of one method's subjects are told of no sooner than this after one, in milliseconds: there may be many. */
const QUIET_MS = 60_000;

const METHOD_KEY = ['global'] as const;

/** An object with a limited method. */
interface Limited {
  [METHOD_LIMITS]?: MethodLimits;
}

/**
 * The limits of one application's methods. It is injected into every object with a limited method, so it must not
 * depend on anything: what it needs is filled in when the module starts.
 */
export class MethodLimits {
  #parts: MethodLimitsParts | undefined;
  readonly #bound = new Set<Limited>();
  readonly #moduleNames = new Map<unknown, string>();
  readonly #sites = new Map<LimitedMethod, Map<unknown, Site>>();

  /** Takes up work. Calls before that fail, since no policy is known yet. */
  start(parts: MethodLimitsParts): void {
    this.#parts = parts;
  }

  /** Checks a limited method when the application starts, and names its inline policy. */
  register(moduleName: string, hostClass: Type, limited: LimitedMethod): void {
    this.#moduleNames.set(hostClass, moduleName);
    this.#siteOf(limited, hostClass);
  }

  /**
   * Puts these limits on what a factory or a value provides: it got nothing injected. A value that several applications
   * provide belongs to the one that started last.
   */
  bind(instance: unknown): void {
    if (this.bindMade(instance)) this.#bound.add(instance as Limited);
  }

  /** As {@link bind}, for an object that lives no longer than a request, or whoever injects it. */
  bindMade(instance: unknown): boolean {
    if (typeof instance !== 'object' || instance === null) return false;
    const target = instance as Limited;
    if (target[METHOD_LIMITS] === this) return false;
    const bound = Reflect.defineProperty(target, METHOD_LIMITS, { value: this, configurable: true });
    if (bound) return true;
    this.#started.report({
      code: 'RL_NOT_BOUND',
      message: `an object of ${target.constructor.name} is frozen: its limited methods will fail`,
    });
    return false;
  }

  /** Lets go of what {@link bind} was given, as far as no other application has it by now. */
  release(): void {
    for (const target of this.#bound) {
      if (target[METHOD_LIMITS] === this) Reflect.deleteProperty(target, METHOD_LIMITS);
    }
    this.#bound.clear();
  }

  /** Runs the method, if its policy lets it. */
  async run(limited: LimitedMethod, self: object, args: unknown[], proceed: () => unknown): Promise<unknown> {
    if (enforcementSuspended()) return proceed();
    const { engine, clock, report } = this.#started;
    const site = this.#siteOf(limited, self.constructor as Type);
    const call = new MethodCall(self.constructor.name, limited.methodName, args);
    const request = await requestFor(site, limited, call, report);
    if (request === undefined) return proceed();

    const verdict = await this.#decide(engine, request, limited, call);
    if (!verdict.allowed) return this.#limited(site, limited, verdict, args);
    if (site.told?.subject === verdict.subject) site.told.isOver = true;
    if (verdict.delayMs > 0 && limited.options.onLimited !== 'wait') {
      await holdUntil(clock, clock.now() + verdict.delayMs);
    }
    const { countIf } = site.planned.slot.current;
    if (countIf === undefined) return proceed();
    return countOutcome(engine, [verdict], report, proceed);
  }

  async #decide(
    engine: LimiterEngine,
    request: ChargeRequest,
    { options }: LimitedMethod,
    call: CallContext,
  ): Promise<Verdict> {
    if (options.onLimited !== 'wait') return (await engine.decide([request], call))[0]!;
    const { slot, subject, cost } = request;
    const { maxWaitMs } = options;
    return engine.awaitCharge(slot, subject, { cost, ...defined({ maxWaitMs }) }, call);
  }

  #limited(site: Site, { options }: LimitedMethod, verdict: Verdict, args: unknown[]): unknown {
    const { onLimited } = options;
    if (typeof onLimited === 'function') return onLimited(verdict, ...args);
    if (onLimited !== 'skip') throw denialOf([verdict]);
    if (this.#isNews(site, verdict.subject)) {
      const again = Number.isFinite(verdict.retryAfterMs) ? ` for ${verdict.retryAfterMs} ms` : '';
      this.#started.warn(
        `RL_CALLS_SKIPPED: ${site.place} is over the limit of policy '${verdict.policy}': calls are skipped${again}`,
      );
    }
    return undefined;
  }

  /** One warning for each time it starts, not for each tick of a job. Without the subject: it may name a person. */
  #isNews(site: Site, subject: string): boolean {
    const { told } = site;
    const at = this.#started.clock.now();
    if (told !== undefined && !(told.subject === subject ? told.isOver : at - told.at >= QUIET_MS))
      return false;
    site.told = { subject, at, isOver: false };
    return true;
  }

  get #started(): MethodLimitsParts {
    if (this.#parts === undefined) {
      throw new RateLimitError(
        'RL_NOT_BOUND',
        'a limited method was called while Nest was still making the application: its limits are not known yet',
      );
    }
    return this.#parts;
  }

  #siteOf(limited: LimitedMethod, hostClass: Type): Site {
    let sites = this.#sites.get(limited);
    if (sites === undefined) this.#sites.set(limited, (sites = new Map()));
    // A factory may make a class for each object: those of one name have one limit, and memory has an end.
    const id = this.#moduleNames.has(hostClass) ? hostClass : hostClass.name;
    let site = sites.get(id);
    if (site === undefined) sites.set(id, (site = this.#makeSite(limited, hostClass)));
    return site;
  }

  #makeSite({ methodName, use, ordinal, options }: LimitedMethod, hostClass: Type): Site {
    const moduleName = this.#moduleNames.get(hostClass);
    const place = `${hostClass.name}.${methodName}`;
    const inlineName =
      (moduleName === undefined ? place : `${moduleName}.${place}`) +
      (ordinal === 0 ? '' : `#${ordinal + 1}`);
    const slot = this.#started.plans.slotOf(use, `@CommonLimit() on ${place}`, inlineName);
    const where = `@CommonLimit() on ${place}`;
    if (typeof options.cost === 'number') requireAffordable(options.cost, slot.current, `${where}.cost`);
    if (options.key === undefined) this.#requireKnownSubject(use, slot, where);
    return { planned: { slot, key: undefined, cost: undefined, skip: undefined }, place, told: undefined };
  }

  /** A method call has no address, user or header: a key of such parts would count everybody together. */
  #requireKnownSubject(use: RateLimitUse, slot: PolicySlot, where: string): void {
    const parts = slot.current.key?.filter((part) => isOfRequests(part)) ?? [];
    if (parts.length === 0) return;
    const shown = parts.map((part) => `'${String(part)}'`).join(', ');
    if (typeof use === 'object') {
      throw new RateLimitConfigError({
        code: 'RL_INVALID_KEY',
        path: `${where}.key`,
        expected:
          "'handler', 'global' or a function; or the subject by the decorator's second argument, { key: (...args) => text }",
        received: slot.current.options.key,
      });
    }
    this.#started.report({
      code: 'RL_OPTION_HAS_NO_EFFECT',
      message: `the key part ${shown} of policy '${slot.name}' means nothing to ${where}: all calls count together unless it is given a key of its own`,
    });
  }
}

/** What a method call has no part in. */
function isOfRequests(part: KeyPart): boolean {
  return part === 'ip' || part === 'user' || part === 'route' || String(part).startsWith('header:');
}

/** What the call charges; `undefined` where the policy skips it. */
async function requestFor(
  { planned }: Site,
  { options }: LimitedMethod,
  call: MethodCall,
  report: DiagnosticSink,
): Promise<ChargeRequest | undefined> {
  const { slot } = planned;
  const key = planned.slot.current.key ?? METHOD_KEY;
  const given = options.cost;
  const cost = typeof given === 'function' ? requireCost(slot.name, given(...call.args)) : given;
  const charge = await chargeFor({ ...planned, key, cost }, call, false, report);
  if (typeof charge === 'string') return undefined;
  const own = textOf(options.key?.(...call.args));
  return own === undefined || own === '' ? charge : { ...charge, subject: boundSubject(subjectOf.key(own)) };
}

class MethodCall implements CallContext {
  readonly transport = 'method';

  constructor(
    readonly className: string,
    readonly methodName: string,
    readonly args: readonly unknown[],
  ) {}

  header(): undefined {
    return undefined;
  }
}
