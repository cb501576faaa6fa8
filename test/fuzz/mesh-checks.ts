// What must hold at every step of the mesh tests, by what the proxies' real enforcers say and by writes under way.

import { CLUSTER_SCOPE } from "../../src/kube/place.ts";
import type { Enforced } from "../../src/mesh/ownership/enforced.ts";
import { readViewOf } from "../../src/mesh/ownership/snapshot.ts";
import { expectShownIsNotWritten } from "./handover-checks.ts";
import { BUCKET } from "./mesh-family.ts";
import { type LABELS, labelsFor } from "./mesh-objects.ts";
import type { ModelProxy, Right } from "./mesh-proxy.ts";

export const NAMESPACES = ["a", "b", "c", "d"];
export const RESOURCES = ["configmaps", "pods"];
const UNHEARD_OF = "unheard-of";

/** An object that the checks ask about, as text. */
export interface Place {
  readonly namespace: string;
  readonly resource: string;
  readonly labels: (typeof LABELS)[number];
  readonly text: string;
}

export const PLACES: readonly Place[] = [CLUSTER_SCOPE, BUCKET, ...NAMESPACES, UNHEARD_OF].flatMap((namespace) =>
  RESOURCES.flatMap((resource) =>
    labelsFor(resource).map((labels) => ({
      namespace,
      resource,
      labels,
      text: `${resource} ${JSON.stringify(labels)} in ${namespace}`,
    })),
  ),
);

/** By place: as which subset and by what right somebody acts there. */
export type Rights = readonly (readonly (readonly [string, Right])[])[];

/** Of a pod without a proxy; what everybody shares it shares. */
const EVERYTHING: Rights = PLACES.map(() => [["", "shared"]]);

interface Known {
  readonly enforced: Enforced | undefined;
  readonly writes: ModelProxy["writes"];
  readonly rights: Rights;
}

/** The checks of one world; they remember what they have looked at, since most steps change little. */
export function createChecks() {
  const known = new WeakMap<ModelProxy, Known>();

  const rightsOf = (proxy: ModelProxy): Rights => {
    const { enforced, writes } = proxy;
    const before = known.get(proxy);
    if (before !== undefined && before.enforced === enforced && before.writes === writes) return before.rights;
    const rights = PLACES.map(({ namespace, resource, labels }) => [...proxy.holds(namespace, resource, labels)]);
    known.set(proxy, { enforced, writes, rights });
    if (enforced !== before?.enforced) expectShown(proxy);
    return rights;
  };

  return {
    rightsOf,
    /** @throws if two subsets hold the same object of a resource in a namespace, and do not both share it */
    oneOwner(proxies: Iterable<ModelProxy>, bare: readonly string[], isThere: (namespace: string) => boolean, where: string) {
      const all = [...proxies].map((proxy) => [proxy.name, rightsOf(proxy)] as const);
      for (const name of bare) all.push([name, EVERYTHING]);
      for (const [at, { namespace, text }] of PLACES.entries()) {
        if (namespace !== UNHEARD_OF && !isThere(namespace)) continue; // there is nothing in it to write
        let alone: string | undefined;
        let other: string | undefined;
        for (const [, rights] of all)
          for (const [subset, right] of rights[at] ?? []) {
            if (right === "alone" && (alone === undefined || alone === subset)) alone = subset;
            else if (right === "alone" || subset !== alone) other ??= subset;
          }
        if (alone === undefined || other === undefined || !isSplit(all, at)) continue;
        const holders = all.flatMap(([name, rights]) => (rights[at] ?? []).map(([subset]) => `"${subset}" by ${name}`));
        throw new Error(`two owners of ${text} after ${where}: ${holders.join(", ")}`);
      }
    },
  };
}

function isSplit(all: readonly (readonly [string, Rights])[], at: number): boolean {
  const rights = all.flatMap(([, of]) => of[at] ?? []);
  const alone = rights.find(([, right]) => right === "alone")?.[0];
  return alone !== undefined && rights.some(([subset]) => subset !== alone);
}

/** What a pod only shows it does not write. */
function expectShown(proxy: ModelProxy): void {
  const { enforced, current } = proxy;
  if (enforced === undefined || current?.table.retained === undefined) return;
  const rest = {
    bare: false,
    controlled: true,
    subset: current.subset,
    outstanding: undefined,
    wanted: undefined,
    reported: true,
    late: false,
    older: false,
  };
  expectShownIsNotWritten({ name: proxy.name, enforced: current, ...rest });
}

/** The namespaces of a resource that it may read. */
export function readable(enforced: Enforced | undefined, resource: string): string[] {
  if (enforced === undefined) return [];
  const view = readViewOf(enforced.view("", resource));
  return NAMESPACES.filter((namespace) => view.ownershipOf(namespace) === "own");
}
