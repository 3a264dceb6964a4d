/**
 * Has work done one at a time: asked for while it is being done, it is done once more, since what it finds may be older
 * than the news. The work must not reject.
 */
export function untilQuiet(work: () => Promise<void>): () => void {
  let isRunning = false;
  let again = false;
  const run = async () => {
    isRunning = true;
    do {
      again = false;
      await work();
    } while (again);
    isRunning = false;
  };
  return () => {
    if (isRunning) again = true;
    else void run();
  };
}
