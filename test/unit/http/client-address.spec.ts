import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import type { Diagnostic } from '../../../lib/core/diagnostics.js';
import { createClientAddress } from '../../../lib/http/client-address.js';
import type { ForwardedHeader } from '../../../lib/http/forwarded-hops.js';
import type { TrustedProxies } from '../../../lib/http/trusted-proxies.js';

type Headers = Partial<Record<ForwardedHeader, string>>;

function resolver(trustedProxies?: TrustedProxies) {
  const reports: Diagnostic[] = [];
  const asked: string[] = [];
  const resolve = createClientAddress({
    trustedProxies,
    ipv6Prefix: 64,
    report: (diagnostic) => reports.push(diagnostic),
  });
  return {
    reports,
    asked,
    resolve: (peer: string | undefined, headers: Headers = {}) =>
      resolve(peer, (name) => {
        asked.push(name);
        return headers[name as ForwardedHeader];
      }),
  };
}

const XFF = 'x-forwarded-for';
const FWD = 'forwarded';

describe('a client address without trusted proxies', () => {
  it('is the peer, whatever headers say', () => {
    const { resolve } = resolver();
    expect(resolve('::ffff:9.9.9.9', { [XFF]: '1.1.1.1', [FWD]: 'for=2.2.2.2' })).toBe('9.9.9.9');
    expect(resolve('2001:db8::1')).toBe('2001:db8::/64');
    expect(resolve(undefined, { [XFF]: '1.1.1.1' })).toBeUndefined();
  });

  it.each([XFF, FWD] as const)('reports the first ignored %s, and looks at no header after that', (name) => {
    const { resolve, reports, asked } = resolver();
    resolve('9.9.9.9');
    expect(reports).toEqual([]);
    resolve('9.9.9.9', { [name]: 'x' });
    asked.length = 0;
    resolve('9.9.9.8', { [XFF]: 'x', [FWD]: 'y' });
    expect(asked).toEqual([]);
    expect(reports).toEqual([
      { code: 'RL_FORWARDED_UNTRUSTED', message: expect.stringContaining(`\`${name}\``) },
    ]);
  });

  it('reports nothing when told that there are no proxies', () => {
    for (const nobody of [0, '0', []]) {
      const { resolve, reports, asked } = resolver(nobody);
      expect(resolve('9.9.9.9', { [XFF]: '1.1.1.1' })).toBe('9.9.9.9');
      expect(reports).toEqual([]);
      expect(asked).toEqual([]);
    }
  });
});

describe('a client address behind trusted proxies', () => {
  it.each<[string, TrustedProxies, string, Headers, string]>([
    ['untrusted peer', '10.0.0.0/8', '9.9.9.9', { [XFF]: '1.1.1.1' }, '9.9.9.9'],
    ['no header', '10.0.0.0/8', '10.0.0.1', {}, '10.0.0.1'],
    ['empty header', '10.0.0.0/8', '10.0.0.1', { [XFF]: '' }, '10.0.0.1'],
    ['one hop', '10.0.0.0/8', '10.0.0.1', { [XFF]: '1.1.1.1' }, '1.1.1.1'],
    ['mapped peer', '10.0.0.0/8', '::ffff:10.0.0.1', { [XFF]: '1.1.1.1' }, '1.1.1.1'],
    ['port', '10.0.0.0/8', '10.0.0.1', { [XFF]: '1.1.1.1:4711' }, '1.1.1.1'],
    ['typed by the client', '10.0.0.0/8', '10.0.0.1', { [XFF]: '6.6.6.6, 1.1.1.1' }, '1.1.1.1'],
    [
      'trusted on the way',
      '10.0.0.0/8',
      '10.0.0.1',
      { [XFF]: '6.6.6.6, 1.1.1.1,10.0.0.3, 10.0.0.2' },
      '1.1.1.1',
    ],
    ['all trusted', '10.0.0.0/8', '10.0.0.1', { [XFF]: '10.0.0.3, 10.0.0.2' }, '10.0.0.3'],
    ['nearest unparsable', '10.0.0.0/8', '10.0.0.1', { [XFF]: '1.1.1.1, unknown' }, '10.0.0.1'],
    [
      'unparsable behind a trusted one',
      '10.0.0.0/8',
      '10.0.0.1',
      { [XFF]: '1.1.1.1, junk, 10.0.0.2' },
      '10.0.0.2',
    ],
    ['IPv6 client', '10.0.0.0/8', '10.0.0.1', { [XFF]: '2001:db8:1:2::3' }, '2001:db8:1:2::/64'],
    ['trusted by whole address', '2001:db8::1', '2001:db8::1', { [XFF]: '2001:db8::2' }, '2001:db8::/64'],
    ['not trusted for its network', '2001:db8::1', '2001:db8::2', { [XFF]: '1.1.1.1' }, '2001:db8::/64'],
    ['forwarded', 'loopback', '::1', { [FWD]: 'for=1.1.1.1;proto=https, for="127.0.0.1:80"' }, '1.1.1.1'],
    ['forwarded IPv6', 'loopback', '::1', { [FWD]: 'for="[2001:db8::5]:80"' }, '2001:db8::/64'],
    ['forwarded malformed', 'loopback', '127.0.0.1', { [FWD]: 'for=1.1.1.1, =' }, '127.0.0.1'],
    ['forwarded malformed on the left', 'loopback', '::1', { [FWD]: 'for="x, for=1.1.1.1' }, '1.1.1.1'],
    ['forwarded without for', 'loopback', '127.0.0.1', { [FWD]: 'for=1.1.1.1, proto=http' }, '127.0.0.1'],
    ['forwarded obfuscated', 'loopback', '127.0.0.1', { [FWD]: 'for=_gazonk' }, '127.0.0.1'],
    ['both agree', 'loopback', '::1', { [XFF]: '1.1.1.1', [FWD]: 'for=1.1.1.1' }, '1.1.1.1'],
    ['both, one empty', 'loopback', '::1', { [XFF]: '1.1.1.1', [FWD]: '' }, '1.1.1.1'],
    ['both differ', 'loopback', '127.0.0.1', { [XFF]: '1.1.1.1', [FWD]: 'for=2.2.2.2' }, '127.0.0.1'],
    ['one hop count', 1, '9.9.9.9', { [XFF]: '6.6.6.6, 1.1.1.1' }, '1.1.1.1'],
    ['two hop counts', 2, '9.9.9.9', { [XFF]: '6.6.6.6, 1.1.1.1, 8.8.8.8' }, '1.1.1.1'],
    ['fewer hops than counted', '5', '9.9.9.9', { [XFF]: '1.1.1.1, 8.8.8.8' }, '1.1.1.1'],
    ['counted hop unparsable', 3, '9.9.9.9', { [XFF]: '1.1.1.1, x, 8.8.8.8' }, '8.8.8.8'],
  ])('%s', (_name, trustedProxies, peer, headers, expected) => {
    expect(resolver(trustedProxies).resolve(peer, headers)).toBe(expected);
    // Once more from the cache.
    const { resolve } = resolver(trustedProxies);
    resolve(peer, headers);
    expect(resolve(peer, headers)).toBe(expected);
  });

  it('reads only the header it is told to', () => {
    const headers = { [XFF]: '1.1.1.1', [FWD]: 'for=2.2.2.2' };
    for (const [header, expected] of [
      [XFF, '1.1.1.1'],
      [FWD, '2.2.2.2'],
    ] as const) {
      const { resolve, asked, reports } = resolver({ proxies: 'loopback', header });
      expect(resolve('::1', headers)).toBe(expected);
      expect(asked).toEqual([header]);
      expect(reports).toEqual([]);
      expect(resolver({ proxies: 1, header }).resolve('9.9.9.9', { ...headers, [header]: undefined })).toBe(
        '9.9.9.9',
      );
    }
  });

  it('reports a conflict between the headers once', () => {
    const { resolve, reports } = resolver('loopback');
    resolve('::1', { [XFF]: '1.1.1.1', [FWD]: 'for=1.1.1.1' });
    expect(reports).toEqual([]);
    resolve('::1', { [XFF]: '1.1.1.1', [FWD]: 'for=2.2.2.2' });
    resolve('::1', { [XFF]: '1.1.1.1', [FWD]: 'for=3.3.3.3' });
    expect(reports).toEqual([{ code: 'RL_FORWARDED_CONFLICT', message: expect.stringContaining('header') }]);
  });

  it('looks at no header of an untrusted peer', () => {
    const { resolve, asked } = resolver('loopback');
    resolve('9.9.9.9', { [XFF]: '1.1.1.1' });
    expect(asked).toEqual([]);
  });

  it('believes a peer without an address, as on a local socket, only by hop count', () => {
    expect(resolver(1).resolve(undefined, { [XFF]: '6.6.6.6, 1.1.1.1' })).toBe('1.1.1.1');
    expect(resolver('loopback').resolve(undefined, { [XFF]: '1.1.1.1' })).toBeUndefined();
  });

  it('walks at most 64 hops', () => {
    const chain = Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
    const header = chain.toReversed().join(', ');
    expect(resolver('uniquelocal').resolve('10.9.9.9', { [XFF]: header })).toBe(chain[63]);
    expect(resolver(1000).resolve('10.9.9.9', { [XFF]: header })).toBe(chain[63]);
  });

  it('express-rate-limit PR#667: one client behind a proxy is counted once, however it is written', () => {
    const { resolve } = resolver('loopback');
    const forms = ['1.2.3.4', '::ffff:102:304', '::ffff:1.2.3.4', '64:ff9b::1.2.3.4', '1.2.3.4:80'];
    expect(forms.map((form) => resolve('::1', { [XFF]: form }))).toEqual(forms.map(() => '1.2.3.4'));
  });
});

describe('a client address under attack', () => {
  const junk = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'1.:,;="\\[] \t\r\n\0%_ff') }),
    fc
      .array(
        fc.oneof(
          fc.ipV4(),
          fc.ipV6(),
          fc.constantFrom(
            'unknown',
            '_hidden',
            '127.0.0.1',
            '10.0.0.1:80',
            '"[::1]"',
            'for=1.1.1.1',
            'for="',
            '\\"',
            '0x7f.1',
          ),
          fc.constantFrom(
            'for="\\',
            'for=";for=127.0.0.1',
            '',
            ';',
            'proto=http',
            '::ffff:127.0.0.1',
            '1.1.1.1\r\nX: y',
          ),
        ),
      )
      .map((entries) => entries.join(', ')),
  );
  const trusts: TrustedProxies[] = [
    'loopback',
    'loopback, uniquelocal',
    '0.0.0.0/0',
    1,
    3,
    { proxies: 'loopback', header: XFF },
    { proxies: 2, header: FWD },
  ];
  const resolvers = [undefined, ...trusts].map((trust) => resolver(trust).resolve);
  const anyResolver = fc.constantFrom(...resolvers);

  it('never throws, never loses a known peer, and carries no control characters', () => {
    fc.assert(
      fc.property(
        anyResolver,
        fc.constantFrom('127.0.0.1', '::1', '9.9.9.9', '2001:db8::1', '::ffff:10.0.0.1'),
        fc.option(junk, { nil: undefined }),
        fc.option(junk, { nil: undefined }),
        (resolve, peer, xForwardedFor, forwarded) =>
          /^[\da-f.:]+(\/64)?$/.test(resolve(peer, { [XFF]: xForwardedFor, [FWD]: forwarded }) ?? ''),
      ),
      { numRuns: 100_000 },
    );
  });

  const proxies = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 3 });
  const client = fc.oneof(
    fc.tuple(fc.integer({ min: 11, max: 99 }), fc.nat(255)).map(([a, b]) => `${a}.1.1.${b}`),
    fc.nat(0xffff).map((group) => `2001:db8:${group.toString(16)}::1`),
  );

  it('does not depend on what is left of the real chain', () => {
    const byAddress = resolver('10.0.0.0/8').resolve;
    const byCount = [1, 2, 3, 4].map((count) => resolver(count).resolve);
    fc.assert(
      fc.property(junk, client, proxies, fc.constantFrom(XFF, FWD), (typed, from, between, header) => {
        const hops = [from, ...between.map((octet) => `10.0.0.${octet}`)];
        const chain = hops.map((hop) => (header === XFF ? hop : `for="${bracketed(hop)}:80"`));
        const expected = byAddress(from);
        return [byAddress, byCount[between.length]!].every(
          (resolve) =>
            resolve('10.0.0.1', { [header]: chain.join(', ') }) === expected &&
            resolve('10.0.0.1', { [header]: [typed, ...chain].join(', ') }) === expected,
        );
      }),
      { numRuns: 100_000 },
    );
  });

  it('does not believe the other header that the client typed', () => {
    const { resolve } = resolver('10.0.0.0/8');
    fc.assert(
      fc.property(junk, client, (typed, from) => {
        const answers = [resolve('10.0.0.1'), resolve(from)];
        return (
          answers.includes(resolve('10.0.0.1', { [XFF]: from, [FWD]: typed })) &&
          answers.includes(resolve('10.0.0.1', { [XFF]: typed, [FWD]: `for="${bracketed(from)}"` }))
        );
      }),
      { numRuns: 20_000 },
    );
  });

  it('keeps no header alive', () => {
    setFlagsFromString('--expose_gc');
    const collect = runInNewContext('gc') as () => void;
    const { resolve } = resolver('loopback');
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let index = 0; index < 4000; index++) {
      const address = `100.100.${100 + (index >> 7)}.${100 + (index & 127)}`;
      const header = Buffer.from(`${'x'.repeat(16_000)}, ${address}`).toString('latin1');
      resolve('::1', { [XFF]: header });
    }
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
    // Used once more, so that the cache itself was still there to be measured.
    expect(resolve('::1', { [XFF]: '100.100.100.100' })).toBe('100.100.100.100');
  });
});

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
