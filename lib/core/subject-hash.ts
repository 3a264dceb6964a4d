import { createHmac } from 'node:crypto';

/** The subject as stores see it: its HMAC under the secret, or the subject itself where there is none. */
export function subjectHash(secret: string | undefined): (subject: string) => string {
  if (secret === undefined) return (subject) => subject;
  return (subject) => createHmac('sha256', secret).update(subject).digest('base64url');
}
