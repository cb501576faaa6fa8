// The rules of iptables mode, in a chain of their own that is replaced as a whole. Invariants: the rules redirect only new connections of
// the pod itself to the given addresses, and none of the proxy's user; they are written as a whole, or not. Called by main.ts.
import { errorMessage, MeshError } from "../../base/errors.ts";

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

/** The result of a command; `error` if it could not be started. */
export interface RunResult {
  readonly status: number | null;
  readonly stderr: string;
  readonly error?: Error;
}

export type Run = (command: string, args: readonly string[], input?: string) => RunResult;

/** Kernels have nftables or the older tables. */
const VARIANTS = ["-nft", "-legacy", ""];
const WAIT_SECONDS = "--wait=10";

/**
 * Writes the rules with the iptables of the image, also if they are already there. Returns the variant.
 * @throws MeshError `IPTABLES_FAILED` with the error of each variant
 */
export function applyRules(rules: readonly FamilyRules[], run: Run): string {
  const failures: string[] = [];
  for (const variant of VARIANTS) {
    const failure = rules.map((each) => applyFamily(each, variant, run)).find((each) => each !== undefined);
    if (failure === undefined) return `iptables${variant}`;
    failures.push(failure);
  }
  throw new MeshError("IPTABLES_FAILED", `redirecting the API server's addresses: ${failures.join("; ")}`);
}

function applyFamily({ family, restore }: FamilyRules, variant: string, run: Run): string | undefined {
  const tables = `${family}tables${variant}`;
  const jump = ["OUTPUT", "--jump", CHAIN];
  const nat = [WAIT_SECONDS, "--table", "nat"];
  return (
    failureOf(run(`${tables}-restore`, [WAIT_SECONDS, "--noflush"], restore), `${tables}-restore`) ??
    (run(tables, [...nat, "--check", ...jump]).status === 0
      ? undefined
      : failureOf(run(tables, [...nat, "--insert", ...jump]), `${tables} --insert OUTPUT`))
  );
}

function failureOf({ status, stderr, error }: RunResult, what: string): string | undefined {
  if (error !== undefined) return `${what}: ${errorMessage(error)}`;
  return status === 0 ? undefined : `${what} ended with ${status}: ${stderr.trim().split("\n").at(-1) ?? ""}`;
}
