import ipaddr from 'ipaddr.js';
import { RateLimitConfigError } from '../core/errors.js';
import { parseAddress, type Address } from '../core/address.js';
import { FORWARDED_HEADERS, type ForwardedHeader } from './forwarded-hops.js';

/**
 * Which proxies are believed about whom they forward for.
 *
 * A string is a CIDR, an address, or one of `'loopback'`, `'linklocal'`, `'uniquelocal'`, or several of these with
 * commas between them. A number, also as text, is a hop count, whole and at least 0: so many proxies, counted from
 * this server, are believed whatever their addresses. `'adapter'` takes the HTTP adapter's own `req.ip`.
 *
 * Proxies usually append to one of the two headers and pass the other on as the client typed it. Name the one that
 * yours write in `header`, and only that one is read.
 */
export type TrustedProxies = ProxyList | { proxies: ProxyList; header: ForwardedHeader };

export type ProxyList = string | number | readonly string[];

/** {@link TrustedProxies}, checked and ready to be asked. */
export interface ProxyTrust {
  /** This many of the nearest hops are trusted whatever their addresses. */
  readonly hops: number;
  /** The only header to read; undefined: whichever is there. */
  readonly header: ForwardedHeader | undefined;
  /** Whether a hop is trusted for its address. */
  includes(address: Address): boolean;
}

type Network = readonly [Address, prefix: number];

const EXPECTED =
  "CIDRs, addresses, 'loopback', 'linklocal' or 'uniquelocal', a whole hop count of at least 0, or 'adapter'";

const NAMED_NETWORKS = new Map<string, readonly Network[]>([
  ['loopback', networks('127.0.0.0/8', '::1/128')],
  ['linklocal', networks('169.254.0.0/16', 'fe80::/10')],
  ['uniquelocal', networks('10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7')],
]);

/**
 * Checks and compiles the option, except for `'adapter'`, which is not a list of proxies.
 *
 * @throws RateLimitConfigError `RL_INVALID_TRUSTED_PROXIES`
 */
export function parseTrustedProxies(option: TrustedProxies): ProxyTrust {
  if (!isRecord(option)) return { ...parseProxyList(option), header: undefined };
  const { proxies, header } = option;
  if (!FORWARDED_HEADERS.includes(header)) {
    throw invalid(`\`header\` to be ${FORWARDED_HEADERS.map((name) => `'${name}'`).join(' or ')}`, header);
  }
  return { ...parseProxyList(proxies), header };
}

function parseProxyList(list: ProxyList): Omit<ProxyTrust, 'header'> {
  if (typeof list === 'number' || (typeof list === 'string' && /^\d+$/.test(list.trim()))) {
    const hops = Number(list);
    if (!Number.isSafeInteger(hops) || hops < 0) throw invalid(EXPECTED, list);
    return { hops, includes: () => false };
  }
  if (typeof list !== 'string' && !Array.isArray(list)) throw invalid(EXPECTED, list);
  const trusted = [list].flat().flatMap(networksOf);
  return { hops: 0, includes: (address) => trusted.some((network) => contains(network, address)) };
}

function networksOf(text: unknown): readonly Network[] {
  if (typeof text !== 'string') throw invalid(EXPECTED, text);
  return text.split(',').flatMap((item) => {
    const name = item.trim();
    const found = NAMED_NETWORKS.get(name) ?? parseNetwork(name);
    if (found === undefined) throw invalid(EXPECTED, name);
    return found;
  });
}

function networks(...cidrs: string[]): readonly Network[] {
  return cidrs.flatMap((cidr) => parseNetwork(cidr) ?? []);
}

function parseNetwork(text: string): [Network] | undefined {
  const [, base = '', length] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(base);
  if (address === undefined) return undefined;
  const bits = address instanceof ipaddr.IPv4 ? 32 : 128;
  // An IPv4-mapped network was written for IPv6 bits, and is asked about IPv4 addresses.
  const mappedBits = bits === 32 && base.includes(':') ? 96 : 0;
  const prefix = length === undefined ? bits : Number(length) - mappedBits;
  return prefix >= 0 && prefix <= bits ? [[address, prefix]] : undefined;
}

function contains([base, prefix]: Network, address: Address): boolean {
  return base.kind() === address.kind() && address.match(base, prefix);
}

function isRecord(option: TrustedProxies): option is Exclude<TrustedProxies, ProxyList> {
  return typeof option === 'object' && option !== null && !Array.isArray(option);
}

function invalid(expected: string, received: unknown): RateLimitConfigError {
  return new RateLimitConfigError({
    code: 'RL_INVALID_TRUSTED_PROXIES',
    path: 'trustedProxies',
    expected,
    received,
  });
}
