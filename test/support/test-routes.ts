// Snapshots of one small app for the proxy's tests: subset "blue" owns the namespaces that the test names, and the default
// subset owns all others.
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { retained as retainedClass, snapshot, subset, table } from "./route-table.ts";
import { VIRTUAL_APP_WORDS } from "./source-words.ts";

/** Of the words of a source kind, proxies get these. */
const { kind, rules, lockField, agentsField } = VIRTUAL_APP_WORDS;
const WORDS = { kind, rules, lockField, agentsField };

export interface Routes {
  /** Namespaces of subset blue. */
  readonly blue?: readonly string[];
  /** Known namespaces of the default subset. */
  readonly defaultSubset?: readonly string[];
  readonly fenced?: readonly string[];
  /** Namespaces that the pod retains read-only; they are also in one of the lists above. */
  readonly retained?: readonly string[];
}

/** A snapshot for a pod of `blue` (or of another subset). */
export function routes(version: number, of: Routes, more: Partial<Snapshot> = {}): Snapshot {
  const { blue = [], defaultSubset = [], fenced = [], retained = [] } = of;
  const members = Object.fromEntries([
    ...blue.map((name) => [name, [0]] as const),
    ...defaultSubset.map((name) => [name, []] as const),
  ]);
  const routeTable = table([subset("blue")], members, {
    fenced,
    ...(retained.length === 0 ? {} : { retained: [retainedClass(retained)] }),
  });
  return snapshot(routeTable, { version, digest: `digest-${version}`, subset: "blue", words: WORDS, ...more });
}
