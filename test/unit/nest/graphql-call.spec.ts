import type { ExecutionContext } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { GraphqlCall } from '../../../lib/nest/graphql/graphql-call.js';

const SOURCES = {
  userOf: () => undefined,
  trustAdapter: false,
  socketAddress: { of: () => '192.0.2.1' },
  normalize: (address: string) => address,
} as never;

const INFO = { parentType: { name: 'Query' }, fieldName: '_entities' };
const CONTEXT = { req: { headers: { 'x-key': 'k' }, socket: { remoteAddress: '192.0.2.1' } } };

it.each([
  ['a field', [{}, {}, CONTEXT, INFO]],
  ['a reference of a federated graph', [{ __typename: 'Cat', id: '1' }, CONTEXT, INFO]],
])('finds request and route of %s', (_what, args) => {
  class Cats {
    resolve() {}
  }
  const context = new ExecutionContextHost(args, Cats, Cats.prototype.resolve) as ExecutionContext;
  const call = new GraphqlCall(context, 'resolve', SOURCES);
  expect(call).toMatchObject({ route: 'Query._entities', request: CONTEXT.req });
  expect(call.header('x-key')).toBe('k');
});
