/**
 * The names under which Nest keeps what this library has to know. They are the same in Nest 11 and 12; Nest 12 does
 * not let them be imported.
 */
export const NEST_METADATA = {
  path: 'path',
  event: 'websockets:message_mapping',
  pattern: 'microservices:pattern',
  guards: '__guards__',
  interceptors: '__interceptors__',
  properties: 'self:properties_metadata',
} as const;
