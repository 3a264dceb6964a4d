/** First words of replies by which a server says that it can't serve now. Nothing is wrong with what was asked. */
const UNAVAILABLE_REPLIES = new Set([
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'READONLY',
  'TRYAGAIN',
  'OOM',
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'MISCONF',
  'NOREPLICAS',
  'BUSY',
  'UNKILLABLE',
  'MOVED',
  'ASK',
]);

/** Codes of our own errors that mean the same. */
const UNAVAILABLE_CODES = new Set(['RL_REDIS_NOT_READY', 'RL_REDIS_TIMEOUT']);

/**
 * Whether an error says that Redis can't be reached or can't serve now: a network error, a missed deadline, or one of
 * the replies above. A script's fault, a broken key and wrong input are none of these.
 */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && code.startsWith('RL_')) return UNAVAILABLE_CODES.has(code);
  // A reply is told from an error of the connection by its name, which both majors of ioredis give it.
  if (error.name !== 'ReplyError') return true;
  return (
    UNAVAILABLE_REPLIES.has(firstWord(error)) || wrapped(error).some((word) => UNAVAILABLE_REPLIES.has(word))
  );
}

/** Whether the server does not have the script (any more): nothing has run, so it can be sent again as a whole. */
export function isScriptMissing(error: unknown): boolean {
  return error instanceof Error && firstWord(error) === 'NOSCRIPT';
}

function firstWord({ message }: Error): string {
  return message.split(' ', 1)[0]!;
}

/** A command that failed inside a script is reported by the script's error: the reply's own first word comes later. */
function wrapped({ message }: Error): string[] {
  return message.startsWith('ERR ') || message.startsWith('@user_script')
    ? message.split(/[\s:]+/).slice(0, 12)
    : [];
}
