// Host names and addresses as URLs have them. Invariant: each has one form, however it is written, so that
// the rules about other servers and the proxy that enforces them compare the same form.
import { BlockList, isIP } from "node:net";

/**
 * Lower case, Punycode, `127.0.0.1` for `0x7f.1` and for `[::ffff:127.0.0.1]`, without brackets and without
 * final dots. Undefined for any other text than a host.
 */
export function canonicalHost(text: string): string | undefined {
  const parsed = /[@/\\?#\s]/.test(text) ? null : URL.parse(`http://${text}`);
  if (parsed === null || parsed.port !== "") return undefined;
  // Final dots change nothing for the name service, and must not lead around a rule.
  const host = parsed.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "");
  if (host === "" || host.length > MAX_HOST_LENGTH) return undefined;
  return MAPPED.test(host) ? embeddedIpv4(host) : host;
}

/** Without brackets. */
export function isAddress(host: string): boolean {
  return isIP(host) !== 0;
}

/** RFC 1035 section 2.3.4 allows 255 bytes on the wire, which are 253 characters as text. */
const MAX_HOST_LENGTH = 253;
/** An IPv4 address in IPv6 form (RFC 4291 section 2.5.5.2): a connection to it is one to the IPv4 address. */
const MAPPED = /^::ffff:[0-9a-f]{1,4}:[0-9a-f]{1,4}$/;

const EMBEDDED = new BlockList();
// Prefixes of 96 bits before an IPv4 address: mapped (RFC 4291), translated (RFC 6052).
for (const prefix of ["::ffff:0:0", "64:ff9b::"]) EMBEDDED.addSubnet(prefix, 96, "ipv6");

/**
 * What a connection to the address reaches: the IPv4 address inside of an IPv6 one, and one form of each other
 * address. Unlike in `canonicalHost`, also that behind a translator, to which no IPv4 connection need lead.
 */
export function reachedAddress(address: string): string {
  const [plain = ""] = address.split("%"); // the zone of a link-local address
  if (isIP(plain) !== 6) return plain;
  return EMBEDDED.check(plain, "ipv6") ? embeddedIpv4(plain) : (canonicalHost(`[${plain}]`) ?? plain);
}

/** The last 32 bits of an IPv6 address. */
function embeddedIpv4(address: string): string {
  const { hostname } = new URL(`http://[${address}]`); // all groups in hexadecimal
  const groups = hostname.slice(1, -1).split(":").slice(-2);
  const [high = 0, low = 0] = groups.map((group) => Number.parseInt(group || "0", 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}
