import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { PROBLEM_MEDIA_TYPE } from '../http/problem-details.js';
import { retryAfterSeconds } from '../http/rate-limit-headers.js';
import { RateLimitException } from './rate-limit-exceptions.js';

/**
 * Writes a denial as problem details, with the same bytes on every adapter. Filters of the application's own come
 * first, and are free to answer otherwise.
 */
@Catch(RateLimitException)
export class RateLimitFilter implements ExceptionFilter {
  readonly #adapterHost: HttpAdapterHost;

  constructor(adapterHost: HttpAdapterHost) {
    this.#adapterHost = adapterHost;
  }

  catch(exception: RateLimitException, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    if (type === 'graphql') throw exception;
    if (type !== 'http') return throwError(() => exception);
    const { httpAdapter } = this.#adapterHost;
    const response: unknown = host.switchToHttp().getResponse();
    if (httpAdapter.isHeadersSent(response)) return httpAdapter.end(response) as unknown;
    const seconds = retryAfterSeconds(exception.verdicts);
    if (seconds !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(seconds));
    httpAdapter.setHeader(response, 'Cache-Control', 'no-store');
    httpAdapter.setHeader(response, 'Content-Type', PROBLEM_MEDIA_TYPE);
    return httpAdapter.reply(
      response,
      JSON.stringify(exception.getResponse()),
      exception.getStatus(),
    ) as unknown;
  }
}
