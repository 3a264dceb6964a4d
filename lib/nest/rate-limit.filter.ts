import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { from, mergeMap, throwError, type Observable } from 'rxjs';
import { PROBLEM_MEDIA_TYPE } from '../http/problem-details.js';
import { retryAfterSeconds } from '../http/rate-limit-headers.js';
import { RateLimitException } from './rate-limit-exceptions.js';
import { TRANSPORTS } from './tokens.js';
import type { TransportOf } from './transports.js';

/**
 * Writes a denial as problem details, with the same bytes on every adapter. Filters of the application's own come
 * first, and are free to answer otherwise.
 */
@Catch(RateLimitException)
export class RateLimitFilter implements ExceptionFilter {
  readonly #adapterHost: HttpAdapterHost;
  readonly #transportOf: TransportOf;

  constructor(adapterHost: HttpAdapterHost, @Inject(TRANSPORTS) transportOf: TransportOf) {
    this.#adapterHost = adapterHost;
    this.#transportOf = transportOf;
  }

  catch(exception: RateLimitException, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    if (type === 'graphql')
      return this.#denial(exception, host).then((denial) => {
        throw denial;
      });
    if (type === 'rpc') return this.#answerMessage(exception, host);
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

  /** What a limited method threw, or a kind of call that leaves it to this filter. */
  async #denial(exception: RateLimitException, host: ArgumentsHost): Promise<Error> {
    return this.#transportOf(host.getType()).denial?.(exception, host.getArgs()) ?? exception;
  }

  #answerMessage(exception: RateLimitException, host: ArgumentsHost): Observable<unknown> {
    const denial = this.#denial(exception, host);
    const answer = this.#transportOf(host.getType()).answerer?.(host.getArgs());
    if (answer !== undefined) return from(denial.then(answer));
    return from(denial).pipe(
      mergeMap((error) => throwError(() => (error as Partial<RpcError>).getError?.() ?? error)),
    );
  }
}

/** Nest's `RpcException`: what it was made with is what callers get. */
interface RpcError {
  getError(): object | string;
}
