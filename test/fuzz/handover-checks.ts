// What must hold at every step of the model of the handover: see handover.test.ts.
import { expect } from "vitest";
import { CLUSTER_SCOPE, isBucket, isInClusterScope, placeHash } from "../../src/kube/place.ts";
import { parseRequestInfo } from "../../src/kube/request-info.ts";
import type { Claim } from "../../src/mesh/handover/claims.ts";
import { decide } from "../../src/mesh/ownership/decide.ts";
import { type Owner, ownersOf } from "../../src/mesh/ownership/owners.ts";
import { readViewOf, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { isSharded, matchesResource, namespacesOf, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { viewOf } from "../../src/mesh/ownership/view-of.ts";

export const NAMESPACES = ["a", "b", "c", "d"];
/** The cluster scope, the buckets that a family may divide, and one that it never does. */
export const CLUSTER_PLACES = [CLUSTER_SCOPE, "#0", "#1", "#2"];
export const SUBSETS = ["", "canary", "beta"];
export const RESOURCES = ["pods", "configmaps", "secrets"];
const LABELS: readonly Record<string, string>[] = [{}, { t: "x" }, { t: "y" }, { u: "" }, { t: "x", u: "" }];
/** A pod of the model, as the API server has it and as its proxy is. */
export interface Pod {
  readonly name: string;
  /** It runs without a proxy: it does as the default subset does, on everything. */
  readonly bare: boolean;
  /** Somebody makes it anew when it is evicted. */
  readonly controlled: boolean;
  subset: string;
  enforced: Snapshot | undefined;
  /** Sent and not acknowledged. */
  outstanding: Snapshot | undefined;
  /** What it is to be sent after that. */
  wanted: Snapshot | undefined;
  /** The pod has reported to the manager that leads now. */
  reported: boolean;
  /** Its status says that it has started only some time after it has. */
  readonly late: boolean;
  /** An older leader may have served it so recently that its status does not count: see OlderPods. */
  older: boolean;
}

// What is in force keeps its owner, and what is new has the one that the spec says: if it is as much a sharded family as what is in force.
export function expectKept(bySpec: RouteTable, inForce: RouteTable | undefined, desired: RouteTable): void {
  for (const resource of RESOURCES) {
    const owners = [inForce ?? bySpec, bySpec, desired].map((table) => ownersOf(table, "", resource));
    if (owners.some(({ isByNamespace }) => !isByNamespace)) continue;
    const [before, spec, now] = owners;
    for (const namespace of [...CLUSTER_PLACES, ...namespacesOf(bySpec)]) {
      const isInForce = inForce !== undefined && (isInClusterScope(namespace) || inForce.classOf.has(namespace));
      if (!isInForce && inForce !== undefined && isSharded(inForce) !== isSharded(bySpec)) continue;
      const owner = isInForce ? before?.nextOwnerOf(namespace) : spec?.nextOwnerOf(namespace);
      expect(now?.nextOwnerOf(namespace)).toEqual(owner);
    }
  }
}

export function expectWhole({ bare, enforced }: Pod): void {
  if (!bare) expect(enforced).toMatchObject({ subset: "", table: { rules: [], fenced: new Set() } });
}

// A pod goes on reading what it could read, but for what moves as a whole.
export function expectNothingLost(pod: Pod, next: Snapshot): void {
  const last = pod.outstanding ?? pod.enforced;
  if (last === undefined) return;
  for (const resource of RESOURCES) {
    const movesAsWhole = [last, next].some(({ table }) => {
      const owners = ownersOf(table, "", resource);
      return owners.isMoving || !owners.isByNamespace;
    });
    if (movesAsWhole) continue;
    const [was, is] = [last, next].map((snapshot) => readViewOf(viewOf(snapshot, "", resource)));
    for (const namespace of [...CLUSTER_PLACES, ...NAMESPACES.filter((name) => last.table.classOf.has(name))]) {
      if (was?.ownershipOf(namespace) === "own" && is?.ownershipOf(namespace) !== "own")
        throw new Error(`${pod.name} loses sight of ${resource} in "${namespace}"`);
    }
  }
}

// While the app is being deleted, what a pod sees goes on, or is refused: a list without it would look as if it were deleted. Resources that
// are partitioned by label are left out: a fenced namespace hides them in any handover.
export function expectNothingVanishes(pod: Pod, next: Snapshot): void {
  const last = pod.outstanding ?? pod.enforced;
  if (last === undefined) return;
  for (const resource of RESOURCES) {
    const [was, is] = [last, next].map((snapshot) => readViewOf(viewOf(snapshot, "", resource)));
    if (is?.isMoving || ownersOf(last.table, "", resource).nextOwnerOf("").kind === "labels") continue;
    for (const namespace of [...CLUSTER_PLACES, ...NAMESPACES.filter((name) => next.table.classOf.has(name))]) {
      if (was?.ownershipOf(namespace) === "own" && is?.ownershipOf(namespace) !== "own")
        throw new Error(`${resource} in "${namespace}" vanish for ${pod.name}`);
    }
  }
}

export function expectShownIsNotWritten({ name, enforced }: Pod): void {
  if (enforced?.table.retained === undefined) return;
  for (const resource of RESOURCES) {
    const view = viewOf(enforced, "", resource);
    for (const namespace of [...CLUSTER_PLACES, ...NAMESPACES]) {
      if (view.ownershipOf(namespace) === "own" || readViewOf(view).ownershipOf(namespace) !== "own") continue;
      const info = parseRequestInfo(...writeIn(namespace, resource));
      if (info.kind !== "resource" || decide(view, info, "namespaced").kind !== "refuse")
        throw new Error(`${name} may write ${resource} in "${namespace}", which it only shows`);
    }
  }
}

// To a place of the cluster scope by a name with the hash of the bucket, or by a name that is not known.
function writeIn(place: string, resource: string): [method: string, target: string] {
  if (place === CLUSTER_SCOPE) return ["POST", `/api/v1/${resource}`];
  // The hash of "a" is 1.
  if (isBucket(place)) return ["PUT", `/api/v1/${resource}/${"a".repeat(placeHash(place) || 32)}`];
  return ["PUT", `/api/v1/namespaces/${place}/${resource}/x`];
}

// What no rule on labels names and what is not public, or is named by equal rules of sharded families, has fences of namespaces alone; and who has something already is told that
// it moves, and is not shown nothing.
export function expectNoNeedlessStop(desired: RouteTable, next: RouteTable, subset: string, claims: readonly Claim[]): void {
  const tables = [desired, ...claims.flatMap((claim) => (claim.kind === "table" ? [claim.table] : []))];
  const own = claims.flatMap((claim) =>
    claim.kind === "table" && claim.enforced && claim.subset === subset && !hasUnreportedFence(claim.table) ? [claim.table] : [],
  );
  if (own.length === 0) return;
  const sent = claims.flatMap((claim) => (claim.kind === "table" && claim.subset === subset ? [claim.table] : []));
  if (hasUnreportedFence(next)) throw new Error(`"${subset}" has something, and is to be shown nothing`);
  const sharding = ({ rules }: RouteTable) => JSON.stringify(rules.filter(({ kind }) => kind === "sharded"));
  if (new Set([...tables, ...sent].map(sharding)).size > 1) return;
  for (const resource of RESOURCES) {
    const isNamed = ({ rules, sharedResources }: RouteTable) =>
      matchesResource(sharedResources, "", resource) ||
      rules.some(({ kind, resources }) => kind === "objects" && matchesResource(resources, "", resource));
    const wasMoving = sent.some((table) => ownersOf(table, "", resource).isMoving);
    if (!tables.some(isNamed) && !wasMoving && ownersOf(next, "", resource).isMoving)
      throw new Error(`${resource} move for "${subset}" and nothing is about them`);
  }
}

function hasUnreportedFence({ rules }: RouteTable): boolean {
  return rules.some((rule) => rule.kind === "fence" && rule.because === "unreported");
}

export function expectOneOwner(pods: ReadonlyMap<number, Pod>): void {
  for (const resource of RESOURCES) {
    const owners = [...pods.values()].flatMap(({ enforced, bare }) => {
      if (bare) return [{ subset: "", ownerOf: (): Owner => ({ kind: "everyone" }) }];
      return enforced === undefined ? [] : [{ subset: enforced.subset, ownerOf: ownersOf(enforced.table, "", resource).ownerOf }];
    });
    for (const namespace of [...CLUSTER_PLACES, ...NAMESPACES, "unheard-of"]) {
      for (const labels of LABELS) {
        const holders = new Set<string>();
        const sharers = new Set<string>();
        for (const { subset: name, ownerOf } of owners) {
          const owner = ownerOf(namespace, labels);
          if (owner.kind === "everyone") sharers.add(name);
          if (owner.kind === "subset" && owner.subset === name) holders.add(name);
        }
        if (holders.size > 0 && new Set([...holders, ...sharers]).size > 1)
          throw new Error(
            `${resource} ${JSON.stringify(labels)} in "${namespace}": held by ${JSON.stringify([...holders])}, shared by ${JSON.stringify([...sharers])}`,
          );
      }
    }
  }
}
