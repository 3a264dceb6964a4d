import { PROBLEM_MEDIA_TYPE, problemDetails } from '../../../lib/http/problem-details.js';
import { denied, verdict } from './verdicts.js';

const detailOf = (given: Parameters<typeof denied>[0], windowMs = 60_000) =>
  problemDetails(429, [denied(given)], () => windowMs).detail;

describe('problemDetails', () => {
  it('429 as RFC 9457 has it, in a fixed order', () => {
    const verdicts = [verdict({ policy: 'burst' }), denied(), denied({ policy: 'daily', retryAfterMs: 5 })];
    expect(JSON.stringify(problemDetails(429, verdicts, (index) => [1000, 60_000, 86_400_000][index]!))).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests",' +
        '"status":429,"detail":"Limit of 5 requests per minute exceeded. Try again in 21 seconds.",' +
        '"violated-policies":["login","daily"]}',
    );
  });

  it('503 where limits could not be checked', () => {
    expect(JSON.stringify(problemDetails(503, [denied()], () => 60_000))).toBe(
      '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",' +
        '"title":"Service Unavailable","status":503,' +
        '"detail":"The request limits cannot be checked at the moment. Try again later.",' +
        '"violated-policies":["login"]}',
    );
  });

  it.each([
    [1, 'millisecond'],
    [250, '250 milliseconds'],
    [1000, 'second'],
    [1500, '1500 milliseconds'],
    [10_000, '10 seconds'],
    [60_000, 'minute'],
    [90_000, '90 seconds'],
    [3_600_000, 'hour'],
    [7_200_000, '2 hours'],
    [86_400_000, 'day'],
    [604_800_000, '7 days'],
  ])('names a window of %d ms', (windowMs, text) => {
    expect(detailOf({}, windowMs)).toBe(`Limit of 5 requests per ${text} exceeded. Try again in 21 seconds.`);
  });

  it.each([
    [1, '1 second'],
    [1000, '1 second'],
    [1001, '2 seconds'],
    [119_000, '119 seconds'],
    [119_001, '2 minutes'],
    [120_001, '3 minutes'],
    [7_199_000, '120 minutes'],
    [7_200_001, '3 hours'],
    [172_800_000, '2 days'],
  ])('names a wait of %d ms', (retryAfterMs, text) => {
    expect(detailOf({ retryAfterMs })).toBe(`Limit of 5 requests per minute exceeded. Try again in ${text}.`);
  });

  it('says where waiting does not help', () => {
    expect(detailOf({ limit: 1, retryAfterMs: Infinity })).toBe(
      'Limit of 1 request per minute exceeded. This request can never fit within it, so trying again will not help.',
    );
  });

  it('repeats nothing that the caller sent', () => {
    const { detail } = problemDetails(429, [denied({ subject: 'user:<script>', policy: '<b>' })], () => 1000);
    expect(detail).toBe('Limit of 5 requests per second exceeded. Try again in 21 seconds.');
  });

  it('has the media type of RFC 9457', () => {
    expect(PROBLEM_MEDIA_TYPE).toBe('application/problem+json; charset=utf-8');
  });
});
