/** One behaviour of an algorithm, worked out by hand. Data only, so that any driver can be held to it. */
export interface Scenario {
  readonly title: string;
  readonly quota: VectorQuota;
  readonly steps: readonly Step[];
}

export interface VectorQuota {
  readonly limit: number;
  /** Milliseconds. */
  readonly window: number;
  /** Default: `limit`. */
  readonly burst?: number;
  /** Milliseconds. Default: no bound. */
  readonly maxDelay?: number;
}

interface StepBase {
  /** Milliseconds after {@link EPOCH}. May run backwards. */
  readonly at: number;
  /** What changes of the quota, from this step on. */
  readonly quota?: Partial<VectorQuota>;
}

export type Step =
  | (StepBase & {
      readonly do?: 'take';
      /** Default: 1. */
      readonly cost?: number;
      /** Names the charge for a later refund. */
      readonly as?: string;
      readonly expect: Outcome;
    })
  /** What a charge of 1 would be answered; `remaining` and `resetAfterMs` without that charge. */
  | (StepBase & { readonly do: 'peek'; readonly expect: Outcome })
  /** Gives back the charge that was named. */
  | (StepBase & { readonly do: 'refund'; readonly of: string })
  /** Gives back without knowing which charge it was. */
  | (StepBase & { readonly do: 'giveBack'; readonly cost: number });

export interface Outcome {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
}

/** An allowed charge: what is left, until when all is back, how long it is held. */
export function ok(remaining: number, resetAfterMs: number, delayMs = 0): Outcome {
  return { allowed: true, remaining, retryAfterMs: 0, resetAfterMs, delayMs };
}

/** A denied one: what is left, when it would be allowed, until when all is back. */
export function no(remaining: number, retryAfterMs: number, resetAfterMs: number): Outcome {
  return { allowed: false, remaining, retryAfterMs, resetAfterMs, delayMs: 0 };
}

/** A whole hour, so that windows that divide the hour are aligned to it. */
export const EPOCH = 472_222 * 3_600_000;

/** A quota with nothing left out. */
export type CompleteQuota = Required<VectorQuota>;

/** What runs a scenario: the bare arithmetic, or a driver with a clock that can be set. One subject each. */
export interface Executor<Charge = unknown> {
  take(now: number, quota: CompleteQuota, cost: number): Answer<Charge> | Promise<Answer<Charge>>;
  peek(now: number, quota: CompleteQuota): Outcome | Promise<Outcome>;
  refund(now: number, quota: CompleteQuota, charge: Charge): void | Promise<void>;
  giveBack(now: number, quota: CompleteQuota, cost: number): void | Promise<void>;
}

export interface Answer<Charge> {
  readonly outcome: Outcome;
  /** What `refund` needs to find the charge again. */
  readonly charge: Charge;
}

/** Declares one test a scenario; each gets an executor of its own. */
export function runVectors<Charge>(
  algorithm: string,
  scenarios: readonly Scenario[],
  createExecutor: () => Executor<Charge> | Promise<Executor<Charge>>,
): void {
  describe(algorithm, () => {
    it.each(scenarios.map((scenario) => [scenario.title, scenario] as const))(
      '%s',
      async (_title, scenario) => {
        const actual = await play(scenario, await createExecutor());
        expect(actual).toEqual(scenario.steps.map((step, i) => labelled(step, i, expected(step))));
      },
    );
  });
}

async function play<Charge>(scenario: Scenario, executor: Executor<Charge>): Promise<unknown[]> {
  const charges = new Map<string, Charge>();
  const outcomes: unknown[] = [];
  let given = scenario.quota;
  for (const [i, step] of scenario.steps.entries()) {
    given = { ...given, ...step.quota };
    const quota = { burst: given.limit, maxDelay: Infinity, ...given };
    const now = EPOCH + step.at;
    let outcome: Outcome | undefined;
    if (step.do === 'peek') {
      outcome = await executor.peek(now, quota);
    } else if (step.do === 'refund') {
      await executor.refund(now, quota, charges.get(step.of)!);
    } else if (step.do === 'giveBack') {
      await executor.giveBack(now, quota, step.cost);
    } else {
      const answer = await executor.take(now, quota, step.cost ?? 1);
      outcome = answer.outcome;
      if (step.as !== undefined) charges.set(step.as, answer.charge);
    }
    outcomes.push(labelled(step, i, outcome));
  }
  return outcomes;
}

function expected(step: Step): Outcome | undefined {
  return 'expect' in step ? step.expect : undefined;
}

/** Which step a difference is about. */
function labelled(step: Step, index: number, outcome: Outcome | undefined) {
  return { step: `#${index + 1} ${step.do ?? 'take'} at ${step.at}`, outcome };
}
