import { RateLimitConfigError } from '../../../lib/core/errors.js';
import { parseAddress } from '../../../lib/core/address.js';
import { parseTrustedProxies, type TrustedProxies } from '../../../lib/http/trusted-proxies.js';

describe('parseTrustedProxies', () => {
  it.each<[TrustedProxies, string, boolean]>([
    ['loopback', '127.0.0.1', true],
    ['loopback', '127.255.0.1', true],
    ['loopback', '::1', true],
    ['loopback', '::ffff:127.0.0.1', true],
    ['loopback', '::2', false],
    ['loopback', '128.0.0.1', false],
    ['linklocal', '169.254.1.1', true],
    ['linklocal', 'fe80::1', true],
    ['linklocal', 'fec0::1', false],
    ['uniquelocal', '10.1.1.1', true],
    ['uniquelocal', '172.31.0.1', true],
    ['uniquelocal', '172.32.0.1', false],
    ['uniquelocal', '192.168.0.1', true],
    ['uniquelocal', 'fd00::1', true],
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '::ffff:10.1.1.1', true],
    ['10.0.0.0/8', '::ffff:a01:101', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.9.8.7/8', '10.0.0.1', true],
    ['10.0.0.0/8', '64:ff9b::10.0.0.1', false],
    ['64:ff9b::/96', '64:ff9b::10.0.0.1', true],
    ['::ffff:10.0.0.0/104', '10.1.1.1', true],
    ['::ffff:10.0.0.0/104', '11.1.1.1', false],
    ['::ffff:10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.2', false],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['0.0.0.0/0', '8.8.8.8', true],
    ['0.0.0.0/0', '::1', false],
    ['loopback, 10.0.0.0/8', '10.0.0.1', true],
    ['loopback,10.0.0.0/8', '127.0.0.1', true],
    [['loopback', '10.0.0.0/8,fd00::/8'], 'fd00::1', true],
    [[], '127.0.0.1', false],
    [1, '127.0.0.1', false],
    [{ proxies: '10.0.0.0/8', header: 'forwarded' }, '10.0.0.1', true],
  ])('%j and %s: %s', (option, address, expected) => {
    expect(parseTrustedProxies(option).includes(parseAddress(address)!)).toBe(expected);
  });

  it.each<[TrustedProxies, number]>([
    [0, 0],
    [3, 3],
    ['2', 2],
    [' 2 ', 2],
    [{ proxies: '1', header: 'x-forwarded-for' }, 1],
    ['10.0.0.0/8', 0],
  ])('%j trusts the nearest %d hops', (option, expected) => {
    expect(parseTrustedProxies(option).hops).toBe(expected);
  });

  it('names the only header to read', () => {
    expect(parseTrustedProxies({ proxies: 1, header: 'forwarded' }).header).toBe('forwarded');
    expect(parseTrustedProxies(1).header).toBeUndefined();
  });

  it.each<[unknown]>([
    ...[
      [-1],
      [1.5],
      [NaN],
      [Infinity],
      [2 ** 53],
      ['-1'],
      ['1.5'],
      ['1e3'],
      ['0x10'],
      ['99999999999999999999'],
    ],
    ...[[''], [' '], [','], ['loopback,'], ['local'], ['toString'], ['true'], ['adapter'], ['example.com']],
    ...[['10.0.0.0/33'], ['10.0.0.0/-1'], ['10.0.0.0/'], ['10.0.0.0/8/8'], ['10.0.0/8']],
    ...[
      ['::/129'],
      ['::ffff:10.0.0.0/95'],
      ['[::1]'],
      ['fe80::1%eth0'],
      ['1.2.3.4:80'],
      ['10.0.0.0/255.0.0.0'],
    ],
    ...[[true], [null], [{}], [() => true], [[1]], [['2']], [[null]], [[['loopback']]], [Symbol.iterator]],
    ...[[{ proxies: 1 }], [{ proxies: 1, header: 'x-real-ip' }], [{ header: 'forwarded' }]],
    ...[[{ proxies: -1, header: 'forwarded' }], [{ proxies: { proxies: 1 }, header: 'forwarded' }]],
  ] as [unknown][])('refuses %p', (option) => {
    let thrown: unknown;
    try {
      parseTrustedProxies(option as TrustedProxies);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(RateLimitConfigError);
    expect(thrown).toMatchObject({ code: 'RL_INVALID_TRUSTED_PROXIES', path: 'trustedProxies' });
  });
});
