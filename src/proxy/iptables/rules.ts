// The rules of iptables mode, in a chain of their own that is replaced as a whole. Pure; main.ts calls it. Invariant: the rules redirect
// only new connections of the pod itself to the given addresses, and none of the proxy's user.

/** The chain of the table `nat`. */
export const CHAIN = "CTRLMESH_OUTPUT";

export interface Redirection {
  /** Addresses and ports of the API server's Service; IPv6 without brackets. */
  readonly from: readonly { readonly ip: string; readonly port: number }[];
  /** The proxy's port on the loopback. */
  readonly to: number;
  /** Whose connections go to the API server itself. */
  readonly exceptUid: number;
}

export type Family = "ip" | "ip6";

/** What is to be set up for one address family. */
export interface FamilyRules {
  readonly family: Family;
  /** Input of iptables-restore --noflush. */
  readonly restore: string;
}

/** The rules by address family; none for a family without an address. */
export function familyRules({ from, to, exceptUid }: Redirection): FamilyRules[] {
  return (["ip", "ip6"] as const).flatMap((family) => {
    const addresses = from.filter(({ ip }) => ip.includes(":") === (family === "ip6"));
    if (addresses.length === 0) return [];
    const bits = family === "ip" ? 32 : 128;
    const lines = [
      "*nat",
      `:${CHAIN} - [0:0]`,
      `-A ${CHAIN} -m owner --uid-owner ${exceptUid} -j RETURN`,
      ...addresses.map(({ ip, port }) => `-A ${CHAIN} -p tcp -d ${ip}/${bits} --dport ${port} -j REDIRECT --to-ports ${to}`),
      "COMMIT",
    ];
    return [{ family, restore: `${lines.join("\n")}\n` }];
  });
}
