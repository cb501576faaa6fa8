// Checks the addresses that the egress proxy connects to, after names have been resolved, so that no name
// gets around the check. Invariant: an IPv4 address is judged alike in each of its IPv6 forms.
import { BlockList, isIP } from "node:net";
import { reachedAddress } from "../../base/host-name.ts";

/** `10.0.0.0/8` */
export interface Cidr {
  readonly address: string;
  readonly bits: number;
  readonly family: "ipv4" | "ipv6";
}

/** Returns why the address is refused, or undefined. */
export type AddressCheck = (address: string) => string | undefined;

/** No policy and no setting opens these. */
const NEVER = [
  ["169.254.0.0/16", "is link-local, as the metadata services of clouds are"],
  ["fe80::/10", "is link-local"],
  ["100.100.100.200/32", "is a metadata service"],
  ["168.63.129.16/32", "is a metadata service"],
  ["192.0.0.192/32", "is a metadata service"],
  ["fd00:ec2::254/128", "is a metadata service"],
  ["fd20:ce::254/128", "is a metadata service"],
  ["0.0.0.0/8", "is unspecified"],
  ["::/128", "is unspecified"],
  ["224.0.0.0/4", "is a multicast address"],
  ["ff00::/8", "is a multicast address"],
  ["240.0.0.0/4", "is reserved"],
] as const;

/**
 * Addresses inside the pod, the node or the cluster. Then those for protocols (RFC 6890), for benchmarks (RFC
 * 2544), which some networks use inside, and of 6to4 relays (RFC 7526), which lead to nobody knows whom. The last five ranges contain IPv4 addresses too. They
 * are refused whole, without a look at the IPv4 address, because its place varies or because nobody needs the
 * form: 6to4, Teredo, local translation (RFC 8215), and the forms that RFC 4291 and RFC 7915 have given up.
 */
const PRIVATE = (
  "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 " +
  "192.0.0.0/24 198.18.0.0/15 192.88.99.0/24 " +
  "fc00::/7 fec0::/10 2002::/16 2001::/32 64:ff9b:1::/48 ::/96 ::ffff:0:0:0/96"
).split(" ");

export function createAddressCheck(allowed: readonly Cidr[]): AddressCheck {
  const never = NEVER.map(([range, why]) => ({ list: listOf([range]), why }));
  const isPrivate = listOf(PRIVATE);
  const isAllowed = listOfCidrs(allowed);
  return (text) => {
    const plain = reachedAddress(text);
    const family = isIP(plain);
    if (family === 0) return "is no IP address";
    const kind = family === 6 ? "ipv6" : "ipv4";
    const found = never.find(({ list }) => list.check(plain, kind));
    if (found !== undefined) return found.why;
    return isPrivate.check(plain, kind) && !isAllowed.check(plain, kind)
      ? "is private, and --egress-private-addresses does not list it"
      : undefined;
  };
}

export function parseCidr(text: string): Cidr | undefined {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  if (version === 0 || address.includes("%") || Number(bits) > (version === 4 ? 32 : 128)) return undefined;
  return { address, bits: Number(bits), family: version === 4 ? "ipv4" : "ipv6" };
}

function listOf(ranges: readonly string[]): BlockList {
  return listOfCidrs(ranges.flatMap((range) => parseCidr(range) ?? []));
}

function listOfCidrs(ranges: readonly Cidr[]): BlockList {
  const list = new BlockList();
  for (const { address, bits, family } of ranges) list.addSubnet(address, bits, family);
  return list;
}
