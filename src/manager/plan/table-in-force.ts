// Which of the tables that proxies claim gives the present owners, for spec.route.paused. Pure; called by
// plan-app.ts. Any proxy can register a table that no manager has made. So the status keeps hashes of the
// tables that the managers made, and only a table with such a hash counts. Invariant: a hash gets into the
// status only from a plan that did not lose the table in force.
import type { AppRef, Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { tableHash } from "../../wire/table-codec.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf, ProxyFacts } from "../facts/proxy-facts.ts";
import { isOfApp, isOver, snapshotsOf } from "./pod-claims.ts";

export interface InForce {
  /** Undefined if there is nothing to keep, or if it is not known yet. */
  readonly table: RouteTable | undefined;
  /** No pod has a table with a hash of the status: then the plan's own table gets no hash there. */
  readonly isLost: boolean;
  /** The hashes of the status that may still be needed, the newest last. */
  readonly hashes: readonly string[];
}

/** @param written the hashes of the status, the newest last; undefined if the app has no status yet */
export function tableInForce(
  app: AppRef,
  pods: readonly AppPod[],
  factsOf: FactsOf,
  written: readonly string[] | undefined,
): InForce {
  const snapshots = pods.flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod)))).filter((snapshot) => isOfApp(app, snapshot));
  const haveAllReported = pods.every((pod) => hasReported(pod, factsOf(podKey(pod))));
  const claimed = new Map(snapshots.map(({ table }) => [ownersHash(table), table]));
  const hashes = haveAllReported ? (written ?? []).filter((hash) => claimed.has(hash)) : (written ?? []);
  const last = hashes.findLast((hash) => claimed.has(hash));
  if (last !== undefined) return { table: claimed.get(last), isLost: false, hashes };
  if (written !== undefined && !haveAllReported) return { table: undefined, isLost: true, hashes };
  return { table: newestOf(snapshots), isLost: written !== undefined, hashes: written ?? [] };
}

const NOTHING: ReadonlySet<string> = new Set();
const hashesOf = new WeakMap<RouteTable, string>();

/**
 * SHA-256 in hex of who owns what: without fences and what is retained, which belong to one subset, one pod
 * or one moment.
 */
export function ownersHash(table: RouteTable): string {
  const hash = hashesOf.get(table) ?? tableHash(withoutFences(table)).toString("hex");
  hashesOf.set(table, hash);
  return hash;
}

// The same object if there is nothing to leave out: its hash is known already.
function withoutFences(table: RouteTable): RouteTable {
  const { retained, ...rest } = table;
  const rules = table.rules.filter(({ kind }) => kind !== "fence");
  const isPlain = retained === undefined && table.fenced.size === 0 && rules.length === table.rules.length;
  return isPlain ? table : { ...rest, rules, fenced: NOTHING };
}

// A table that fences everything does not count: it was made while other pods had not reported, and does not
// show the owners.
function newestOf(snapshots: readonly Snapshot[]): RouteTable | undefined {
  let newest: Snapshot | undefined;
  for (const snapshot of snapshots) {
    const hasNothing = snapshot.table.rules.some((rule) => rule.kind === "fence" && rule.because === "unreported");
    if (!hasNothing && snapshot.version > (newest?.version ?? -1)) newest = snapshot;
  }
  return newest?.table;
}

function hasReported(pod: AppPod, facts: ProxyFacts | undefined): boolean {
  return pod.proxy !== "own" || isOver(pod, facts) || (facts !== undefined && !facts.mayHoldMore);
}
