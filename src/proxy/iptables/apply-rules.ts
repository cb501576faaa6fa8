// Writes the rules with the iptables of the image. Kernels have nftables or the older tables, so that both variants are tried. Invariant:
// it succeeds as a whole, or fails with the error of each variant. main.ts calls it.
import { errorMessage, MeshError } from "../../base/errors.ts";
import { CHAIN, type FamilyRules } from "./rules.ts";

/** The result of a command; `error` if it could not be started. */
export interface RunResult {
  readonly status: number | null;
  readonly stderr: string;
  readonly error?: Error;
}

export type Run = (command: string, args: readonly string[], input?: string) => RunResult;

const VARIANTS = ["-nft", "-legacy", ""];
const WAIT_SECONDS = "--wait=10";

/** Writes the rules, also if they are already there. Returns the variant. @throws MeshError `IPTABLES_FAILED` */
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
