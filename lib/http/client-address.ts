import type { DiagnosticSink } from '../core/diagnostics.js';
import { identityOf, parseEndpoint } from '../core/address.js';
import { detached } from '../core/detached.js';
import { FORWARDED_HEADERS, nearestFirst, type ForwardedHeader } from './forwarded-hops.js';
import { RecentCache } from '../core/recent-cache.js';
import { parseTrustedProxies, type ProxyTrust, type TrustedProxies } from './trusted-proxies.js';

/**
 * Finds out who sent a request.
 *
 * @param peer the address of the socket's other end, as Node gives it; undefined where there is none.
 * @param header reads a request header by its lower-case name, repeated ones joined with commas.
 * @returns the client in the form of `normalizeAddress`; undefined only where the peer's address is not known.
 */
export type ClientAddress = (
  peer: string | undefined,
  header: (name: string) => string | undefined,
) => string | undefined;

export interface ClientAddressOptions {
  /** Left out: only the peer counts, and the first forwarding header that is ignored for it is reported. */
  readonly trustedProxies?: TrustedProxies;
  /** IPv6 clients are counted by networks of this many bits, 0 to 128. */
  readonly ipv6Prefix: number;
  readonly report: DiagnosticSink;
  /** How many addresses are remembered, in each of two generations; default 4096. */
  readonly cacheCapacity?: number;
}

/** One machine on the way: how it is counted, and whether its address alone makes it a trusted proxy. */
interface Hop {
  readonly identity: string;
  readonly trusted: boolean;
}

type HopReader = (text: string) => Hop | undefined;

/** No real chain is longer; a header of thousands of entries costs no more than this. */
const MAX_HOPS = 64;
const DEFAULT_CACHE_CAPACITY = 4096;

/**
 * Compiles the options into a function for the hot path.
 *
 * @throws RateLimitConfigError `RL_INVALID_TRUSTED_PROXIES`
 */
export function createClientAddress(options: ClientAddressOptions): ClientAddress {
  const trust =
    options.trustedProxies === undefined ? undefined : parseTrustedProxies(options.trustedProxies);
  const readHop = createHopReader(options, trust);
  return trust === undefined
    ? peerOnly(readHop, options.report)
    : throughProxies(readHop, trust, options.report);
}

function peerOnly(readHop: HopReader, report: DiagnosticSink): ClientAddress {
  let reported = false;
  return (peer, header) => {
    if (!reported) {
      const ignored = FORWARDED_HEADERS.find((name) => header(name));
      if (ignored !== undefined) {
        reported = true;
        report({ code: 'RL_FORWARDED_UNTRUSTED', message: untrustedMessage(ignored) });
      }
    }
    return peer === undefined ? undefined : readHop(peer)?.identity;
  };
}

function throughProxies(readHop: HopReader, trust: ProxyTrust, report: DiagnosticSink): ClientAddress {
  const isTrusted = (hop: Hop | undefined, distance: number): boolean =>
    distance < trust.hops || hop?.trusted === true;

  /** The first hop that is not trusted, or the last that could be read. */
  const walk = (peer: Hop | undefined, name: ForwardedHeader, value: string): Hop | undefined => {
    let client = peer;
    let distance = 0;
    for (const entry of nearestFirst(name, value)) {
      const hop = readHop(entry);
      if (hop === undefined) break;
      client = hop;
      distance++;
      if (distance === MAX_HOPS || !isTrusted(hop, distance)) break;
    }
    return client;
  };

  let reported = false;
  return (text, header) => {
    // Without an address the peer is a local socket: only a hop count can make it a trusted proxy.
    const peer = text === undefined ? undefined : readHop(text);
    if (!isTrusted(peer, 0)) return peer?.identity;

    const xForwardedFor = trust.header === 'forwarded' ? undefined : header('x-forwarded-for');
    const forwarded = trust.header === 'x-forwarded-for' ? undefined : header('forwarded');
    if (!forwarded) return (xForwardedFor ? walk(peer, 'x-forwarded-for', xForwardedFor) : peer)?.identity;
    const client = walk(peer, 'forwarded', forwarded)?.identity;
    if (!xForwardedFor || walk(peer, 'x-forwarded-for', xForwardedFor)?.identity === client) return client;

    // The proxy appends to one of them, and the other is what the client typed: neither can be believed.
    if (!reported) {
      reported = true;
      report({ code: 'RL_FORWARDED_CONFLICT', message: CONFLICT_MESSAGE });
    }
    return peer?.identity;
  };
}

function createHopReader(options: ClientAddressOptions, trust: ProxyTrust | undefined): HopReader {
  const recent = new RecentCache<Hop>(options.cacheCapacity ?? DEFAULT_CACHE_CAPACITY);
  return (text) => {
    const known = recent.get(text);
    if (known !== undefined) return known;
    const address = parseEndpoint(text);
    if (address === undefined) return undefined;
    const hop = {
      identity: identityOf(address, options.ipv6Prefix),
      trusted: trust?.includes(address) === true,
    };
    recent.set(detached(text), hop);
    return hop;
  };
}

function untrustedMessage(header: ForwardedHeader): string {
  return (
    `a request carried \`${header}\`, which is ignored because \`trustedProxies\` is not set: behind a proxy ` +
    'all clients now share its limits. Set `trustedProxies` to your proxies, or to 0 if there are none'
  );
}

const CONFLICT_MESSAGE =
  'a trusted proxy sent both `x-forwarded-for` and `forwarded`, and they name different clients, so neither is ' +
  'believed and the request counts for the proxy. Set `trustedProxies: { proxies, header }` to the header that ' +
  'your proxy writes';
