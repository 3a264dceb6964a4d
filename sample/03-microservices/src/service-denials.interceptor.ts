import {
  HttpException,
  HttpStatus,
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { catchError, type Observable } from 'rxjs';
import { denialIn } from './denial.js';

/** What a service denies, the front answers with 429. What fails otherwise stays as it is. */
@Injectable()
export class ServiceDenials implements NestInterceptor {
  constructor(private readonly host: HttpAdapterHost) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      catchError((error: unknown) => {
        const denial = denialIn(error);
        if (denial === undefined) throw error;
        const setHeader = (name: string, value: string) =>
          this.host.httpAdapter.setHeader(context.switchToHttp().getResponse(), name, value);
        setHeader('Cache-Control', 'no-store');
        // In whole seconds, rounded up: who comes back then is not too early.
        if (denial.retryAfterMs !== undefined)
          setHeader('Retry-After', String(Math.ceil(denial.retryAfterMs / 1_000)));
        throw new HttpException(denial.message, HttpStatus.TOO_MANY_REQUESTS);
      }),
    );
  }
}
