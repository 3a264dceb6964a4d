import { nearestFirst } from '../../../lib/http/forwarded-hops.js';

describe('nearestFirst', () => {
  it.each([
    ['a', ['a']],
    ['a, b,c', ['c', 'b', 'a']],
    [' a\t,\tb ', ['b', 'a']],
    ['', ['']],
    [',', ['', '']],
    [',a,', ['', 'a', '']],
  ])('reads x-forwarded-for %j', (value, expected) => {
    expect([...nearestFirst('x-forwarded-for', value)]).toEqual(expected);
  });

  it.each([
    ['for=192.0.2.43', ['192.0.2.43']],
    ['for=192.0.2.43, for=198.51.100.17;by=203.0.113.60;proto=http', ['198.51.100.17', '192.0.2.43']],
    ['For="[2001:db8:cafe::17]:4711",for=_hidden', ['_hidden', '[2001:db8:cafe::17]:4711']],
    ['for="a,b", for=c', ['c', 'a,b']],
    ['for="a\\"b,c", for=d', ['d', 'a"b,c']],
    ['for="a,\\"b", for=d', ['d', 'a,"b']],
    ['for="a\\\\", for=d', ['d', 'a\\']],
    ['for="a\\\\\\", b", for=d', ['d', 'a\\", b']],
    ['by=203.0.113.60', ['']],
    ['proto=http, for=1.2.3.4', ['1.2.3.4', '']],
    ['for=1.2.3.4, nonsense', ['', '1.2.3.4']],
    ['nonsense, for=1.2.3.4', ['1.2.3.4', '']],
    ['for="never closed, for=1.2.3.4', ['1.2.3.4', '']],
    ['for=1.2.3.4, for="never opened, x', ['', '']],
    ['"\\, for=1.2.3.4', ['1.2.3.4', '']],
    ['', ['']],
    [',for=a', ['a', '']],
  ])('reads forwarded %j', (value, expected) => {
    expect([...nearestFirst('forwarded', value)]).toEqual(expected);
  });
});
