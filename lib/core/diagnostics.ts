import type { ErrorCode } from './errors.js';

/** Something an operator should know that fails no call. */
export interface Diagnostic {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Where diagnostics go: the Nest layer writes them to its logger. */
export type DiagnosticSink = (diagnostic: Diagnostic) => void;

/**
 * Passes each distinct diagnostic on once. After `limit` different ones of a code it says nothing of that any more: what
 * callers can vary must fill neither memory nor logs.
 */
export function onceEach(sink: DiagnosticSink, limit = 256): DiagnosticSink {
  const told = new Map<ErrorCode, Set<string>>();
  return (diagnostic) => {
    const { code, message } = diagnostic;
    let messages = told.get(code);
    if (messages === undefined) told.set(code, (messages = new Set()));
    if (messages.has(message) || messages.size >= limit) return;
    messages.add(message);
    sink(diagnostic);
  };
}
