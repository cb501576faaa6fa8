// What a check of `ctrlmesh check` is. Invariant: each finding has a severity, a cause, and a place in the docs; the
// next command where there is one.
import { errorMessage, isMeshError } from "../../base/errors.ts";
import type { FoundApp } from "../apps/apps.ts";
import type { Cluster } from "../frame/cluster.ts";

/** From the least. */
export const SEVERITIES = ["warning", "error"] as const;
export type Severity = (typeof SEVERITIES)[number];

export interface Finding {
  readonly severity: Severity;
  /** KIND NAMESPACE/NAME; absent for the cluster. */
  readonly object?: string;
  readonly message: string;
  /** The next command. */
  readonly next?: string;
  /** A page with its heading, below docs/. */
  readonly docs: string;
}

type More = Pick<Finding, "object" | "next">;

export function foundError(message: string, docs: string, more: More = {}): Finding {
  return { severity: "error", message, docs, ...more };
}

export function foundWarning(message: string, docs: string, more: More = {}): Finding {
  return { severity: "warning", message, docs, ...more };
}

export interface Look {
  readonly cluster: Cluster;
  /** The apps that are looked at: all, or the one of --app. */
  apps(): Promise<readonly FoundApp[]>;
  /** Namespace of the policies that are looked at; undefined: all. */
  readonly namespace: string | undefined;
  readonly nowMs: number;
}

export interface Check {
  readonly name: string;
  /** What is true if nothing is found. */
  readonly holds: string;
  run(look: Look): Promise<readonly Finding[]>;
}

export interface Checked {
  readonly check: Check;
  readonly findings: readonly Finding[];
}

/** @throws MeshError `NO_ANSWER` if the API server does not answer, `NOT_LOGGED_IN` if it does not accept the user's credentials */
export async function runChecks(checks: readonly Check[], look: Look): Promise<Checked[]> {
  return Promise.all(checks.map(async (check) => ({ check, findings: await check.run(look).catch(notChecked) })));
}

function notChecked(error: unknown): readonly Finding[] {
  if (isMeshError(error, "NO_ANSWER") || isMeshError(error, "NOT_LOGGED_IN")) throw error;
  return [{ severity: "warning", message: `not checked: ${errorMessage(error)}`, docs: "reference/cli.md#check" }];
}

/** What is wrong there may be in a field that cannot be read. */
export function unreadFindings(unread: readonly string[], docs: string, more: More): Finding[] {
  if (unread.length === 0) return [];
  const message = `its status cannot be read whole, since another version has written it: ${unread.join(", ")}`;
  return [foundWarning(message, docs, more)];
}
