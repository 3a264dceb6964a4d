import { Catch, HttpStatus, type ArgumentsHost } from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { denialIn } from './denial.js';
import { outageIn } from './outage.js';

/**
 * What a service denies, the front answers with 429, and with 503 where the service is down: both as problem details
 * (RFC 9457). What fails otherwise stays as it is.
 */
@Catch()
export class ServiceFailures extends BaseExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {
    super();
  }

  override catch(error: unknown, host: ArgumentsHost): void {
    const problem = problemOf(error);
    // oxlint-disable-next-line promise/valid-params -- this is the filter's, no promise's
    if (problem === undefined) return super.catch(error, host);
    const { retryAfterMs, ...body } = problem;
    const { httpAdapter } = this.host;
    const response: unknown = host.switchToHttp().getResponse();
    httpAdapter.setHeader(response, 'Cache-Control', 'no-store');
    httpAdapter.setHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
    // In whole seconds, rounded up: who comes back then is not too early.
    if (retryAfterMs !== undefined)
      httpAdapter.setHeader(response, 'Retry-After', String(Math.ceil(retryAfterMs / 1_000)));
    // As text: adapters give an object a content type of their own.
    httpAdapter.reply(response, JSON.stringify(body), body.status);
  }
}

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: HttpStatus;
  readonly detail: string;
  readonly retryAfterMs: number | undefined;
}

function problemOf(error: unknown): Problem | undefined {
  const denial = denialIn(error);
  if (denial !== undefined) {
    return {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too Many Requests',
      status: HttpStatus.TOO_MANY_REQUESTS,
      detail: denial.message,
      retryAfterMs: denial.retryAfterMs,
    };
  }
  const outage = outageIn(error);
  if (outage === undefined) return undefined;
  // The error itself may name addresses that are none of a client's business.
  return {
    type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
    title: 'Service Unavailable',
    status: HttpStatus.SERVICE_UNAVAILABLE,
    detail: 'A service that is needed for this is not available at the moment. Try again later.',
    retryAfterMs: outage.retryAfterMs,
  };
}
