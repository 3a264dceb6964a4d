import fc from 'fast-check';
import { normalizeAddress } from '../../../lib/core/address.js';
import { growth } from '../../support/growth.js';

describe('normalizeAddress', () => {
  it.each([
    // IPv4, however a proxy or a dual-stack socket writes it
    ['1.2.3.4', '1.2.3.4'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['1.2.3.4:567', '1.2.3.4'],
    ['1.2.3.4:_hidden', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['::ffff:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:102:304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['::ffff:1.2.3.4%eth0', '1.2.3.4'],
    // NAT64
    ['64:ff9b::1.2.3.4', '1.2.3.4'],
    ['64:ff9b::102:304', '1.2.3.4'],
    ['64:ff9b:0:0:1::102:304', '64:ff9b::/64'],
    // IPv6 by network
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::1]:80', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1.2.3.4', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['[fe80::1%eth0.5]:80', 'fe80::/64'],
    ['::1', '::/64'],
    ['::', '::/64'],
    ['::1.2.3.4', '::/64'],
  ])('%s is %s', (text, expected) => {
    expect(normalizeAddress(text, 64)).toBe(expected);
  });

  it.each([
    [0, '::/0'],
    [1, '8000::/1'],
    [32, 'ffff:ffff::/32'],
    [56, 'ffff:ffff:ffff:ff00::/56'],
    [63, 'ffff:ffff:ffff:fffe::/63'],
    [65, 'ffff:ffff:ffff:ffff:8000::/65'],
    [127, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127'],
    [128, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('cuts IPv6 at %d bits', (prefix, expected) => {
    expect(normalizeAddress('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', prefix)).toBe(expected);
  });

  it.each([
    ...['', ' ', 'unknown', '_hidden', '_SEVKISEK', 'localhost', '*'],
    ...[
      '0x7f.1',
      '1.2.3',
      '1.2',
      '1',
      '2130706433',
      '0177.0.0.1',
      '01.2.3.4',
      '0x1.2.3.4',
      '1.2.3.4.5',
      '1.2.3.256',
    ],
    ...['1.2.3.4:', '1.2.3.4:x', '1.2.3.4:123456', '[1.2.3.4]', '[1.2.3.4]:80', '1.2.3.4%eth0', '1.2.3.4/8'],
    ...[
      ':',
      ':::',
      '1:',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '1::2::3',
      '12345::',
      'g::',
      '::1::',
      '1:2:3:4:5:6:7:8::',
    ],
    ...['::1.2.3', '::01.2.3.4', '::0x1.2.3.4', '::ffff:1.2.3.256', '::1.2.3.4:5', '1.2.3.4::'],
    ...['[::1', '::1]', '[]', '[::1]80', '[[::1]]', '::1%', '::1%\r\n', 'fe80::1%a b'],
    ...[' 1.2.3.4', '1.2.3.4\n', '1.2.3.4\0', '1.2.3.4\0.evil', '::1\n', '١.٢.٣.٤', '1.2.3.4, 5.6.7.8'],
  ])('%j is nobody', (text) => {
    expect(normalizeAddress(text, 64)).toBeUndefined();
  });

  it('express-rate-limit PR#667: one client has one identity, and NAT64 clients do not share one', () => {
    const mapped = ['1.2.3.4', '::ffff:102:304', '::ffff:1.2.3.4', '0:0:0:0:0:ffff:1.2.3.4'];
    expect(new Set(mapped.map((text) => normalizeAddress(text, 64)))).toEqual(new Set(['1.2.3.4']));
    expect(normalizeAddress('2001:db8::1.2.3.4', 64)).toBe(normalizeAddress('2001:db8::ffff', 64));
    expect(normalizeAddress('64:ff9b::1.2.3.4', 64)).toBe('1.2.3.4');
    expect(normalizeAddress('64:ff9b::1.2.3.5', 64)).toBe('1.2.3.5');
  });

  it('reads IPv6 exactly as the URL standard does', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '::',
        ':',
        '64:ff9b::',
        '::ffff:',
        '0',
        '1.2.3.4',
        'ffff',
        '10',
        '00000',
        '255.1.0.9',
        '01.1.1.1',
      ),
      fc.integer({ min: 0, max: 0xffff }).map((group) => group.toString(16)),
    );
    const loose = fc.array(piece, { maxLength: 17 }).map((pieces) => pieces.join(''));
    const groups = fc.array(piece, { minLength: 1, maxLength: 9 }).map((pieces) => pieces.join(':'));
    fc.assert(
      fc.property(
        fc.oneof(fc.ipV6(), loose, groups),
        (text) => normalizeAddress(`[${text}]`, 128) === urlForm(text),
      ),
      { numRuns: 50_000 },
    );
  });

  it('is a fixed point, and the same in brackets, with a port and with a zone', () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.integer({ min: 0, max: 128 }), (text, prefix) => {
        const identity = normalizeAddress(text, prefix)!;
        const bare = identity.replace(/\/.*/, '');
        const forms = [`[${text}]`, `[${text}]:8080`, `${text}%en0`, text.toUpperCase(), bare];
        return forms.every((form) => normalizeAddress(form, prefix) === identity);
      }),
      { numRuns: 20_000 },
    );
  });

  it.each(['1', ':', '1:', 'f', '1.', '%', '[', '::1%a', '255.'])(
    'takes time linear in what an attacker sends: many %j',
    (part) => {
      const normalize = (length: number) => {
        normalizeAddress(part.repeat(length), 64);
        normalizeAddress(`[${part.repeat(length)}]:80`, 64);
      };
      expect(growth(normalize)).toBeLessThan(32);
    },
  );
});

/** By the URL standard, with the IPv4 addresses that mapped and NAT64 ones carry. */
function urlForm(text: string): string | undefined {
  let address: string;
  try {
    address = new URL(`http://[${text}]/`).hostname.slice(1, -1);
  } catch {
    return undefined;
  }
  const carried = /^(?:::ffff:([\da-f]+)|64:ff9b::(?:([\da-f]+):)?):?([\da-f]*)$/.exec(address);
  if (!carried || (carried[1] !== undefined && carried[3] === '')) return address;
  const [high, low] = [parseInt(carried[1] ?? carried[2] ?? '0', 16), parseInt(carried[3] || '0', 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
