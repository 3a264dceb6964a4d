import ipaddr from 'ipaddr.js';

/** A parsed address. IPv4-mapped IPv6 is already IPv4 here: dual-stack sockets show IPv4 peers that way. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const DOTTED = `${OCTET}(?:\\.${OCTET}){3}`;
const IPV4 = new RegExp(`^${DOTTED}$`);
/** Groups up to the last colon, then a group or a dotted tail, then perhaps a zone. */
const IPV6 = new RegExp(`^([\\da-f:]*:)([\\da-f]*|${DOTTED})(?:%[\\w.~-]+)?$`, 'i');
/** RFC 7239 allows a port to be a number or an obfuscated name. */
const PORT = '(?::(?:\\d{1,5}|_[\\w.-]+))';
const IPV4_AND_PORT = new RegExp(`^([\\d.]+)${PORT}$`);
const BRACKETED = new RegExp(`^\\[([^\\]]+)\\]${PORT}?$`);

const GROUP_BITS = 16;
const GROUPS = 8;
/** The well-known prefix of NAT64, `64:ff9b::/96` (RFC 6052). */
const NAT64: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('64:ff9b::'), 96];

/**
 * The one form in which a client is counted, whatever way its address was written.
 *
 * IPv4 stays dotted; IPv4-mapped and NAT64 (`64:ff9b::/96`) addresses become the IPv4 address they carry; any
 * other IPv6 address becomes its network, `2001:db8:1:2::/64`, because one subscriber owns all of it. Brackets,
 * ports and zone ids are dropped.
 *
 * @param ipv6Prefix length of the network in bits, 0 to 128; at 128 the whole address is the identity.
 * @returns undefined for anything else, also `unknown`, obfuscated names, and octal, hexadecimal or short IPv4.
 */
export function normalizeAddress(text: string, ipv6Prefix: number): string | undefined {
  if (IPV4.test(text)) return text;
  const address = parseEndpoint(text);
  return address && identityOf(address, ipv6Prefix);
}

/** Reads an address that may carry brackets and a port, as proxies write them. */
export function parseEndpoint(text: string): Address | undefined {
  const bracketed = BRACKETED.exec(text)?.[1];
  if (bracketed !== undefined) return parseIpv6(bracketed);
  return parseAddress(IPV4_AND_PORT.exec(text)?.[1] ?? text);
}

/** Reads a bare address: no brackets, no port. */
export function parseAddress(text: string): Address | undefined {
  return IPV4.test(text) ? ipaddr.IPv4.parse(text) : parseIpv6(text);
}

/** See {@link normalizeAddress}. */
export function identityOf(address: Address, ipv6Prefix: number): string {
  if (address instanceof ipaddr.IPv4) return address.toString();
  if (address.match(NAT64)) return ipaddr.fromByteArray(address.toByteArray().slice(-4)).toString();
  if (ipv6Prefix === GROUPS * GROUP_BITS) return address.toString();
  const network = address.parts.map((group, index) => group & groupMask(ipv6Prefix - index * GROUP_BITS));
  return `${new ipaddr.IPv6(network).toString()}/${ipv6Prefix}`;
}

function parseIpv6(text: string): Address | undefined {
  const [, head, tail] = IPV6.exec(text) ?? [];
  if (head === undefined || tail === undefined) return undefined;
  try {
    // The parser would take `::1.2.3.4` for an IPv4-mapped address, and `::102:304`, which is the same, not.
    const address = ipaddr.IPv6.parse(head + (tail.includes('.') ? dottedToGroups(tail) : tail));
    return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
  } catch {
    return undefined;
  }
}

function dottedToGroups(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(dotted).octets;
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

function groupMask(bits: number): number {
  const kept = Math.min(Math.max(bits, 0), GROUP_BITS);
  return (0xffff << (GROUP_BITS - kept)) & 0xffff;
}
