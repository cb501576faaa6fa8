// The rules of a subset, and the rules of a single pod: the rules of its subset and what the pod retains
// read-only. Pure. Invariant: pods with equal rules share one object, and each table is compared once for all
// pods that enforce it.

import { createHash } from "node:crypto";
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import { type RouteContent, routeDigest } from "../../wire/route-type.ts";
import { retainedBetween } from "./retained.ts";

export interface PodRules {
  /**
   * The rules that a pod of the subset must enforce.
   * @param from the snapshot that the pod enforces now; undefined if the pod retains nothing
   */
  of(subset: string, from: Snapshot | undefined): UnversionedSnapshot;
}

/**
 * @param base the rules of a subset, with its fences; @param withTable the same with another table
 * @param isYoung true for a namespace that was just created. Such a namespace is usually lost because it gets
 * a label while it is
 *   still empty. It is not retained, because that would restart all pods of a subset
 */
export function createPodRules(
  base: (subset: string) => UnversionedSnapshot,
  withTable: (rules: UnversionedSnapshot, table: RouteTable) => UnversionedSnapshot,
  isYoung: (namespace: string) => boolean = () => false,
): PodRules {
  const byDigest = new Map<string, UnversionedSnapshot>();
  const known = new Map<RouteTable, Map<string, UnversionedSnapshot>>();

  const make = (subset: string, from: Snapshot): UnversionedSnapshot => {
    const rules = base(subset);
    const retained = retainedBetween(from, rules).flatMap((each) => {
      const namespaces = new Set([...each.namespaces].filter((name) => !isYoung(name)));
      return namespaces.size === 0 ? [] : [{ ...each, namespaces }];
    });
    if (retained.length === 0) return rules;
    const made = withTable(rules, { ...rules.table, retained });
    const same = byDigest.get(made.digest) ?? made;
    byDigest.set(made.digest, same);
    return same;
  };

  return {
    of(subset, from) {
      if (from === undefined) return base(subset);
      const ofTable = known.get(from.table) ?? new Map<string, UnversionedSnapshot>();
      known.set(from.table, ofTable);
      const key = `${from.subset}>${subset}`; // a subset's name contains no ">"
      const rules = ofTable.get(key) ?? make(subset, from);
      ofTable.set(key, rules);
      return rules;
    },
  };
}

interface SubsetRules {
  readonly all: ReadonlyMap<string, UnversionedSnapshot>;
  of(subset: string): UnversionedSnapshot;
  readonly digest: string;
}

/** The rules of every subset. */
export function rulesOfSubsets(subsets: readonly string[], make: (subset: string) => UnversionedSnapshot): SubsetRules {
  const all = new Map(subsets.map((subset) => [subset, make(subset)]));
  return {
    all,
    of: (subset) => all.get(subset) ?? make(subset),
    digest: digestOf([...all].map(([subset, { digest }]) => [subset, digest])),
  };
}

/** A snapshot without the version: the version belongs to the app, not to the rules. */
export type UnversionedSnapshot = Omit<Snapshot, "version">;

/**
 * The rules that a subset's proxies must enforce. Equal rules have equal digests, in every replica and after
 * restarts.
 */
export function rulesOf(content: RouteContent): UnversionedSnapshot {
  return { ...content, digest: routeDigest(content) };
}

/** A digest of plain data: half of a SHA-256, in hex. */
function digestOf(data: unknown): string {
  return createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 32);
}
