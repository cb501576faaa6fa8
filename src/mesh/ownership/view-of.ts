// Makes the view of one resource from a snapshot. Pure. The session caches the views of each snapshot.
import { formatTerms, type LabelTerm, matchesTerms } from "../../kube/label-selector.ts";
import { BUCKETS } from "../../kube/place.ts";
import { reasonsOf } from "./frozen-places.ts";
import { hiddenObjects } from "./hidden-objects.ts";
import { isOwnedBy, ownersOf } from "./owners.ts";
import { createRetainedTest, indexRetained, momentaryTest, type RetainedIndex } from "./retained-index.ts";
import {
  governingResource,
  type LabelFilter,
  type NamespacesByOwnership,
  type Ownership,
  type ResourceView,
  type Snapshot,
} from "./snapshot.ts";
import { namespacesOf, type RouteTable } from "./table.ts";

/** @param retained the index of the snapshot's table, so that a caller makes it once for many views */
export function viewOf(
  snapshot: Snapshot,
  group: string,
  resource: string,
  retained: RetainedIndex | undefined = indexRetained(snapshot.table),
): ResourceView {
  const governing = governingResource(group, resource);
  const owners = ownersOf(snapshot.table, governing.group, governing.resource);
  const isSoleOwner = owners.sole !== undefined && isOwnedBy(owners.sole, snapshot.subset);
  const labelFilter = filterOf(owners.termsOf(snapshot.subset));
  const hidden = hiddenObjects(snapshot, governing);
  const ownershipOf = (namespace: string): Ownership => {
    const owner = owners.ownerOf(namespace);
    if (owner.kind === "moving" || owner.kind === "unknown") return owner.kind;
    return isOwnedBy(owner, snapshot.subset) ? "own" : "other-subset";
  };
  const view: ResourceView = {
    group,
    resource,
    ownsAll: labelFilter === undefined && hidden === undefined && isSoleOwner,
    isMoving: owners.isMoving,
    byLabelsOnly: labelFilter !== undefined && isSoleOwner,
    hasNoRules: snapshot.table.rules.length === 0 && snapshot.table.fenced.size === 0,
    labelFilter,
    guard: snapshot.guard,
    frozen: snapshot.frozen && reasonsOf(snapshot.frozen),
    inside: snapshot.inside,
    hidden,
    isByName: BUCKETS.some((bucket) => snapshot.table.classOf.has(bucket)),
    ownershipOf,
    ownerOf: owners.ownerOf,
    nextOwnerOf: owners.nextOwnerOf,
    namespaces: namespacesBy(ownershipOf, snapshot.table),
  };
  // Every pod lists other resources again when they move.
  const canBeRetained = !(isSoleOwner && labelFilter === undefined) && owners.isByNamespace && !owners.isMoving;
  const isRetained =
    retained !== undefined && canBeRetained ? createRetainedTest(retained, governing.group, governing.resource) : undefined;
  if (retained === undefined || isRetained === undefined) return view;
  return {
    ...view,
    readView: { ...readViewFor(view, isRetained, snapshot.table), isForMoment: momentaryTest(retained, isRetained) },
  };
}

function readViewFor(view: ResourceView, isRetained: (namespace: string) => boolean, table: RouteTable): ResourceView {
  const ownershipOf = (namespace: string): Ownership => (isRetained(namespace) ? "own" : view.ownershipOf(namespace));
  return { ...view, ownershipOf, namespaces: namespacesBy(ownershipOf, table) };
}

// Planning asks with every list, and the answer of one view never changes.
function namespacesBy(ownershipOf: (namespace: string) => Ownership, table: RouteTable): () => NamespacesByOwnership {
  let names: NamespacesByOwnership | undefined;
  return () => {
    if (names === undefined) {
      const known = namespacesOf(table);
      names = {
        own: known.filter((name) => ownershipOf(name) === "own"),
        others: known.filter((name) => ownershipOf(name) !== "own"),
      };
    }
    return names;
  };
}

function filterOf(terms: readonly LabelTerm[]): LabelFilter | undefined {
  if (terms.length === 0) return undefined;
  return { labelSelector: formatTerms(terms), matches: (labels) => matchesTerms(terms, labels) };
}
