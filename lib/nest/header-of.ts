import type { IncomingHttpHeaders } from 'node:http';

/** A header by its name in any spelling, repeated ones joined with commas. */
export function headerOf(headers: IncomingHttpHeaders | undefined, name: string): string | undefined {
  const value = headers?.[name.toLowerCase()];
  return Array.isArray(value) ? value.join(', ') : value;
}
