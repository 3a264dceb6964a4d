const SMALL = 20_000;
const FACTOR = 8;
const RUNS = 5;
/** Shorter times are noise. */
const LEAST_MS = 0.05;

/**
 * How many times longer `run` takes for an input eight times as long: about 8 where its time is linear, 64 where it is
 * quadratic. The shortest of several runs counts, so a busy machine does not.
 */
export function growth(run: (length: number) => void): number {
  return (
    shortest(() => run(SMALL * FACTOR)) /
    Math.max(
      LEAST_MS,
      shortest(() => run(SMALL)),
    )
  );
}

function shortest(run: () => void): number {
  const times = Array.from({ length: RUNS }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return Math.min(...times);
}
