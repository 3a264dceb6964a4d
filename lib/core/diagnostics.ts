import type { ErrorCode } from './errors.js';

/** Something an operator should know that fails no call. */
export interface Diagnostic {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Where diagnostics go: the Nest layer writes them to its logger. */
export type DiagnosticSink = (diagnostic: Diagnostic) => void;

/**
 * Passes each distinct diagnostic on once. After `limit` different ones it says nothing any more: what callers can
 * vary must fill neither memory nor logs.
 */
export function onceEach(sink: DiagnosticSink, limit = 256): DiagnosticSink {
  const told = new Set<string>();
  return (diagnostic) => {
    const id = `${diagnostic.code}\n${diagnostic.message}`;
    if (told.has(id) || told.size >= limit) return;
    told.add(id);
    sink(diagnostic);
  };
}
