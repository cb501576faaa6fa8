// How a proxy lets its pod write in a place, by the shipping views of its routes.
import { remember } from "../../src/base/remember.ts";
import { clusterAt, mayReach } from "../../src/mesh/ownership/clusters.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { viewOf } from "../../src/mesh/ownership/view-of.ts";
import { createEnforcers, snapshotInside } from "../../src/proxy/session/cluster-enforcers.ts";
import { CLUSTER, isAbroad, namespaceInside, SERVER } from "./rules.ts";

export interface Access {
  /** `home`: by requests to the API server at home; `tunnel`: by a connection to a cluster; `inside`: by requests that the proxy serves. */
  readonly way: "home" | "tunnel" | "inside";
  /** The routes do not limit who writes to the cluster: every pod may. */
  readonly isOpen: boolean;
}

/** Undefined: the pod may not write in the place. */
export function accessTo(routes: Snapshot | undefined, place: string): Access | undefined {
  return routes && accessBy(routes)(place);
}

const accessBy = remember((routes: Snapshot) => {
  const home = viewOf(routes, "", RESOURCE);
  const part = snapshotInside(routes, CLUSTER);
  const inside = part && viewOf(part, "", RESOURCE);
  return (place: string): Access | undefined => {
    if (!isAbroad(place)) return home.ownershipOf(place) === "own" ? HOME : undefined;
    if (mayReach(routes, SERVER)) return clusterAt(routes, SERVER) === undefined ? OPEN : TUNNEL;
    const namespace = namespaceInside(place);
    const owns = namespace !== undefined && inside?.ownershipOf(namespace) === "own";
    return owns ? INSIDE : undefined;
  };
});

// Equal access is one object.
const HOME: Access = { way: "home", isOpen: false };
const OPEN: Access = { way: "tunnel", isOpen: true };
const TUNNEL: Access = { way: "tunnel", isOpen: false };
const INSIDE: Access = { way: "inside", isOpen: false };

const RESOURCE = "configmaps";

/** True if the enforcers of a proxy with these writes in flight say that the routes refuse none of them. */
export function allowsAll(routes: Snapshot | undefined, writes: readonly WriteAt[]): boolean {
  const enforcers = createEnforcers();
  for (const { way, place, routes: before } of writes.toSorted((a, b) => a.routes.version - b.routes.version)) {
    enforcers.enforce(before);
    if (way === "tunnel") enforcers.beginEgress(SERVER);
    else if (way === "inside") enforcers.inside(CLUSTER).beginWrite(namespaceInside(place) ?? "", TARGET);
    else enforcers.beginWrite(place, TARGET);
  }
  if (routes !== undefined) enforcers.enforce(routes);
  let isDrained = false;
  enforcers.whenDrained(() => {
    isDrained = true;
  });
  return isDrained;
}

interface WriteAt extends Pick<Access, "way"> {
  readonly place: string;
  /** Under which it began. */
  readonly routes: Snapshot;
}

const TARGET = { group: "", resource: RESOURCE, name: "x" };
