// One of several processes that share a limit. At each task it connects and says that it is ready; at the word it
// consumes as often as it was told, all at once, and answers how many calls passed of each subject.
const { limiterBuilder } = await import(process.argv[2]);

let limiter;
let task;

async function prepare(given) {
  task = given;
  const { redis, prefix, policy } = task;
  const { limit, window, algorithm } = policy;
  const builder = limiterBuilder(redis).driver('redis').prefix(prefix);
  limiter = builder.limit(limit).window(window).algorithm(algorithm).build();
  await limiter.peek('nobody');
  return 'ready';
}

async function consume() {
  const passed = {};
  await Promise.all(
    Array.from({ length: task.calls }, async (_, i) => {
      const subject = task.subjects[i % task.subjects.length];
      const { allowed } = await limiter.consume(subject, { cost: task.cost });
      if (allowed) passed[subject] = (passed[subject] ?? 0) + 1;
    }),
  );
  await limiter.close();
  return passed;
}

process.on('message', async (message) => {
  process.send(await (message === 'go' ? consume() : prepare(message)));
});
