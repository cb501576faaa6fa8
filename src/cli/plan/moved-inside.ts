// Which namespaces of another cluster get another owner between two routes. Pure. The owners before are those that the manager has
// published. Labels of these namespaces are in that cluster. So all labels are tried by which the stored rules give the owners that are
// published. Invariant: a namespace is said to move, or to stay, only if it does with all of them.
import type { Labels } from "../../kube/label-selector.ts";
import { compileNow } from "../../manager/apps/compile/compile-now.ts";
import type { RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { ownersIn, shownOwners } from "../../mesh/ownership/place-owners.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { ownerText, type WithOwners } from "../apps/owned-places.ts";
import { comparedMoves, groupedMoves, type Move, type Owners } from "./moved-namespaces.ts";

type ShownOwners = NonNullable<WithOwners["owners"]>;

interface InsideFacts {
  /** By the stored spec. */
  readonly before: RouteSpec;
  readonly after: RouteSpec;
  /** By namespace, as OwnershipSlices have them. */
  readonly published: ReadonlyMap<string, ShownOwners>;
  /** Of the namespaces that the user has named. */
  readonly labels: ReadonlyMap<string, Labels>;
  /** What the others may have. Undefined: too many to try. */
  readonly possible: readonly Labels[] | undefined;
}

export interface MovedInside {
  readonly moves: readonly Move[];
  /** Whether these move depends on their labels. */
  readonly unknown: readonly string[];
}

/** The number of namespaces, multiplied by that of the sets of labels to try. A million takes some seconds. */
const MAX_TRIES = 1_000_000;

interface Outcomes {
  /** With the labels by which the stored rules give the published owners. */
  readonly likely: Map<string, Owners | undefined>;
  /** With all labels. */
  readonly all: Map<string, Owners | undefined>;
}

export function movedInside({ before, after, published, labels, possible }: InsideFacts): MovedInside {
  const isTried = possible !== undefined && possible.length * published.size <= MAX_TRIES;
  const outcomes = new Map(
    [...published.keys()].map((name): [string, Outcomes] => [name, { likely: new Map(), all: new Map() }]),
  );
  for (const tried of isTried ? possible : [{}]) {
    const namespaces = [...published.keys()].map((name) => ({ name, labels: labels.get(name) ?? tried }));
    const [old, next] = [compileNow(before, namespaces), compileNow(after, namespaces)];
    const moveOf = comparedMoves(old, next);
    for (const [name, { likely, all }] of outcomes) {
      const owners = published.get(name) ?? [];
      if (textOf(ownersOf(old, name)) === textOf(owners)) note(likely, moveOf(name));
      note(all, moveFrom(owners, ownersOf(next, name)));
    }
  }
  const moved: { name: string; owners: Owners }[] = [];
  const unknown: string[] = [];
  for (const [name, { likely, all }] of outcomes) {
    const [owners, ...others] = [...(likely.size > 0 ? likely : all).values()];
    if (others.length > 0 || !(isTried || labels.has(name))) unknown.push(name);
    else if (owners !== undefined) moved.push({ name, owners });
  }
  return { moves: groupedMoves(moved), unknown };
}

function note(outcomes: Map<string, Owners | undefined>, owners: Owners | undefined): void {
  outcomes.set(JSON.stringify(owners) ?? "", owners);
}

/** As OwnershipSlices have them. */
export function ownersOf(table: RouteTable, namespace: string): ShownOwners {
  return shownOwners(ownersIn(table, namespace));
}

/** What is in force does not follow from the stored rules, for example after a pause. */
function moveFrom(before: ShownOwners, after: ShownOwners): Owners | undefined {
  if (textOf(before) === textOf(after)) return undefined;
  return { from: ownerText({ owners: before }), to: ownerText({ owners: after }) };
}

/** The same fields in the same order. */
function textOf(owners: ShownOwners): string {
  return JSON.stringify(owners.map(({ subset, resources, moreResources }) => [subset, resources, moreResources]));
}
