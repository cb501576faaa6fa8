// Snapshots of one small app for the proxy's tests: subset "blue" owns what the test says, the default subset the rest.
import type { Snapshot } from "../../src/route/snapshot.ts";
import { snapshot, subset, table } from "./route-table.ts";

export interface Routes {
  /** Namespaces of subset blue. */
  readonly blue?: readonly string[];
  /** Known namespaces of the default subset. */
  readonly rest?: readonly string[];
  readonly fenced?: readonly string[];
}

/** A snapshot for a pod of `blue` (or of another subset). */
export function routes(version: number, { blue = [], rest = [], fenced = [] }: Routes, more: Partial<Snapshot> = {}): Snapshot {
  const members = Object.fromEntries([...blue.map((name) => [name, [0]] as const), ...rest.map((name) => [name, []] as const)]);
  const routeTable = table([subset("blue")], members, { fenced });
  return snapshot(routeTable, { version, digest: `digest-${version}`, subset: "blue", ...more });
}
