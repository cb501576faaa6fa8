// The rules of iptables mode, in chains of their own that are replaced as a whole. Invariants: only new
// connections of the pod itself to the given addresses are redirected, and none of the proxy's user;
// connections to the operator's webhooks only if they come from outside of the pod.
import type { SpawnSyncReturns } from "node:child_process";
import { errorMessage, MeshError } from "../../base/errors.ts";

const OUTPUT_CHAIN = "CTRLMESH_OUTPUT";
/** For connections from outside of the pod. Connections of the pod to itself never pass this chain. */
const INBOUND_CHAIN = "CTRLMESH_INBOUND";

export interface Redirection {
  /** Addresses and ports of the API server's Service; IPv6 without brackets. */
  readonly from: readonly { readonly ip: string; readonly port: number }[];
  /** The proxy's port on the loopback. */
  readonly to: number;
  /** The user whose connections go to the API server directly. */
  readonly exceptUid: number;
  /** The port of the operator's webhooks, and the port of the proxy's listener for them. */
  readonly inbound?: { readonly from: number; readonly to: number } | undefined;
}

export type Family = "ip" | "ip6";

export interface FamilyRules {
  readonly family: Family;
  /** Input of iptables-restore --noflush. */
  readonly restore: string;
  /** The kernel's chain `from` jumps to the mesh's chain `to`. */
  readonly jumps: readonly { readonly from: string; readonly to: string }[];
}

export function familyRules({ from, to, exceptUid, inbound }: Redirection): FamilyRules[] {
  return (["ip", "ip6"] as const).flatMap((family) => {
    const addresses = from.filter(({ ip }) => ip.includes(":") === (family === "ip6"));
    if (addresses.length === 0) return [];
    const bits = family === "ip" ? 32 : 128;
    const [chain, inwards] = [OUTPUT_CHAIN, INBOUND_CHAIN];
    const lines = [
      "*nat",
      `:${chain} - [0:0]`,
      ...(inbound ? [`:${inwards} - [0:0]`] : []),
      `-A ${chain} -m owner --uid-owner ${exceptUid} -j RETURN`,
      ...addresses.map(({ ip, port }) => `-A ${chain} -p tcp -d ${ip}/${bits} --dport ${port} -j REDIRECT --to-ports ${to}`),
      ...(inbound ? [`-A ${inwards} -p tcp --dport ${inbound.from} -j REDIRECT --to-ports ${inbound.to}`] : []),
      "COMMIT",
    ];
    const jumps = [{ from: "OUTPUT", to: chain }, ...(inbound ? [{ from: "PREROUTING", to: inwards }] : [])];
    return [{ family, restore: `${lines.join("\n")}\n`, jumps }];
  });
}

/** `error`: the command could not be started, so there is no `stderr`. */
export type RunResult = Pick<SpawnSyncReturns<string>, "status" | "stderr" | "error">;

export type Run = (command: string, args: readonly string[], input?: string) => RunResult;

/** Kernels have nftables or the older tables. */
const VARIANTS = ["-nft", "-legacy", ""];
const WAIT_SECONDS = "--wait=10";

/**
 * Writes the rules, or replaces those of an earlier run. Returns the variant of iptables that has worked.
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

function applyFamily({ family, restore, jumps }: FamilyRules, variant: string, run: Run): string | undefined {
  const tables = `${family}tables${variant}`;
  const nat = [WAIT_SECONDS, "--table", "nat"];
  const failure = failureOf(run(`${tables}-restore`, [WAIT_SECONDS, "--noflush"], restore), `${tables}-restore`);
  if (failure !== undefined) return failure;
  for (const { from, to } of jumps) {
    const jump = [from, "--jump", to];
    if (run(tables, [...nat, "--check", ...jump]).status === 0) continue;
    const refused = failureOf(run(tables, [...nat, "--insert", ...jump]), `${tables} --insert ${from}`);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

function failureOf({ status, stderr, error }: RunResult, what: string): string | undefined {
  if (error !== undefined) return `${what}: ${errorMessage(error)}`;
  return status === 0 ? undefined : `${what} ended with ${status}: ${stderr.trim().split("\n").at(-1) ?? ""}`;
}
