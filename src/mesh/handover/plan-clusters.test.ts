import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLUSTER_SUBSETS, createClusterPods, podEvents, routesOf } from "../../../test/support/cluster-pods.ts";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { table } from "../../../test/support/route-table.ts";
import { CLUSTER_REQUESTS, CLUSTER_SERVERS } from "../contract/route-type.ts";
import { type ClusterRoute, type HomeObject, mayReach, maySee } from "../ownership/clusters.ts";
import type { Claim, ClaimOfTable } from "./claims.ts";
import { clusterTroubles, planClusters } from "./plan-clusters.ts";
import type { FactsOf } from "./proxy-facts.ts";

const TABLE = table([], {});

function cluster(name: string, owner: string, servers: readonly string[] = [`${name}:443`]): ClusterRoute {
  return { name, servers, drainMs: 60_000, owner };
}

function claim(podName: string, subset: string, clusters: readonly ClusterRoute[] | undefined, enforced = true): ClaimOfTable {
  return { kind: "table", podName, subset, table: TABLE, enforced, clusters };
}

function ownedBy(subset: string, desired: readonly ClusterRoute[], claims: readonly Claim[]): string[] {
  const clusters = planClusters(desired, claims).clustersOf(subset);
  return clusters.flatMap(({ name, owner, isFenced }) => (owner === subset && isFenced !== true ? [name] : []));
}

const EU = cluster("eu", "blue");
const EU_BEFORE = cluster("eu", "green");
const US = cluster("us", "green");

describe("a cluster goes to its owner", () => {
  it("when no pod of another subset may write there", () => {
    expect(ownedBy("blue", [EU], [])).toEqual(["eu"]);
    expect(ownedBy("blue", [EU], [claim("g", "green", [EU])])).toEqual(["eu"]);
    expect(ownedBy("blue", [EU], [claim("b", "blue", [])])).toEqual(["eu"]);
  });

  it("not while a pod of another subset owns it, does not know it, or enforces nothing", () => {
    for (const clusters of [[EU_BEFORE], [], undefined])
      expect(ownedBy("blue", [EU], [claim("g", "green", clusters)])).toEqual([]);
    expect(ownedBy("blue", [EU], [claim("g", "green", [EU_BEFORE], false), claim("g", "green", [EU])])).toEqual([]);
    expect(ownedBy("blue", [EU], [{ kind: "everything", podName: "x", subset: undefined }])).toEqual([]);
  });

  it("not while a pod of another subset does not know one of its servers", () => {
    const wider = cluster("eu", "blue", ["eu:443", "10.0.0.1:443"]);
    expect(ownedBy("blue", [wider], [claim("g", "green", [EU])])).toEqual([]);
    expect(ownedBy("blue", [wider], [claim("b", "blue", [EU]), claim("g", "green", [EU])])).toEqual([]);
  });

  it("not while a pod of another subset may see one of its objects, or does not know of that", () => {
    const named = { ...EU, objects: [{ group: "", resource: "secrets", name: "eu" }] };
    expect(ownedBy("blue", [named], [claim("g", "green", [named])])).toEqual(["eu"]);
    for (const other of [EU_BEFORE, { ...named, owner: "green" }, cluster("us", "blue"), { ...US, objects: named.objects }])
      expect(ownedBy("blue", [named], [claim("b", "blue", [EU]), claim("g", "green", [other])])).toEqual([]);
    expect(ownedBy("blue", [named], [claim("b", "blue", [named]), claim("g", "green", [named])])).toEqual(["eu"]);
  });

  it("and stays there when it gets a new object, which pods of other subsets see until they have the new routes", () => {
    const stranger: Claim = { kind: "everything", podName: "x", subset: undefined };
    for (const before of [EU, { ...EU, isOpen: true as const }]) {
      const named = { ...before, objects: [{ group: "", resource: "secrets", name: "eu" }] };
      const claims = [claim("b", "blue", [before]), claim("g", "green", [before])];
      expect(ownedBy("blue", [named], claims)).toEqual(["eu"]);
      expect(ownedBy("blue", [named], [...claims, stranger])).toEqual(["eu"]);
      expect(planClusters([named], claims).waits).toEqual([]);
    }
  });

  it("and stays there when a pod comes that has not reported; the wait names that pod all the same", () => {
    const stranger: Claim = { kind: "everything", podName: "x", subset: undefined };
    const claims = [claim("b", "blue", [EU]), stranger];
    expect(ownedBy("blue", [EU], claims)).toEqual(["eu"]);
    expect(planClusters([EU], claims).waits).toEqual([
      { podName: "x", subset: undefined, cause: "unreported", clusters: ["eu"] },
    ]);
  });

  it("not while a pod enforces routes from a time without the rule, though a pod of the owner still has those from before", () => {
    const claims = [claim("b", "blue", [EU]), claim("g", "green", [])];
    expect(ownedBy("blue", [EU], claims)).toEqual([]);
  });
});

describe("a cluster to which the mesh does not limit connections", () => {
  const objects = [{ group: "", resource: "secrets", name: "eu" }];
  const open = { ...EU, objects, isOpen: true as const };
  const hiding = (clusters: readonly ClusterRoute[]): Claim => ({ ...claim("g", "green", clusters), hidesObjectsOnly: true });

  it("goes to its owner when no pod of another subset sees its objects, also if their proxies see no tunnels", () => {
    expect(ownedBy("blue", [open], [hiding([open])])).toEqual(["eu"]);
    expect(ownedBy("blue", [open], [hiding([])])).toEqual([]);
    expect(ownedBy("blue", [open], [claim("g", "green", undefined)])).toEqual([]);
  });

  it("is the only kind that such proxies give up", () => {
    const us = cluster("us", "blue");
    expect(ownedBy("blue", [open, us], [hiding([open, us])])).toEqual(["eu"]);
    expect(planClusters([open, us], [hiding([us])]).waits).toEqual([
      { podName: "g", subset: "green", cause: "holds", clusters: ["eu"] },
      { podName: "g", subset: "green", cause: "not-enforced", clusters: ["us"] },
    ]);
  });
});

it("names a pod of the owner that goes around the mesh, and fences nothing for it", () => {
  const claims: Claim[] = [claim("b", "blue", undefined), { kind: "everything", podName: "bare", subset: "blue" }];
  expect(ownedBy("blue", [EU], claims)).toEqual(["eu"]);
  expect(planClusters([EU], claims).waits.map(({ podName, cause }) => `${podName} ${cause}`)).toEqual([
    "b not-enforced",
    "bare no-proxy",
  ]);
});

it("names pods whose proxies cannot serve the requests to a cluster, and those that report that they cannot reach theirs", () => {
  const divided = { ...EU, owner: "", upstream: { url: "https://eu" } };
  const facts = (...capabilities: string[]) =>
    proxyFacts({
      capabilities: new Set(capabilities),
      clusters: { unreachable: [{ cluster: "eu", reason: "refused" }] },
    });
  const known = { old: facts(CLUSTER_SERVERS), new: facts(CLUSTER_SERVERS, CLUSTER_REQUESTS), blind: facts() };
  const pods = Object.keys(known).map((name) => appPod(name, "blue"));
  const factsOf: FactsOf = (key) => known[key.split("/")[1] as keyof typeof known];
  expect(clusterTroubles([divided], pods, factsOf).map(({ podName, reason }) => `${podName}: ${reason}`)).toEqual([
    "old: refused",
    "new: refused",
    "blind: refused",
    expect.stringMatching(/^old: its proxy is of an earlier version/),
  ]);
});

it("says why each pod is waited for", () => {
  const claims = [
    claim("old", "green", undefined),
    claim("new", "green", [EU_BEFORE]),
    { ...claim("gone", "green", []), isGone: true as const },
  ];
  expect(planClusters([EU, cluster("us", "green")], claims).waits).toEqual([
    { podName: "old", subset: "green", cause: "not-enforced", clusters: ["eu", "us"] },
    { podName: "new", subset: "green", cause: "holds", clusters: ["eu"] },
    { podName: "gone", subset: "green", cause: "pod-gone", clusters: ["eu"] },
  ]);
});

const SERVERS = ["a:443", "b:443", "c:443"];

const OBJECTS: readonly HomeObject[] = ["x", "y"].map((name) => ({ group: "", resource: "secrets", name }));
const NAMES = fc.constantFrom("one", "two");

/** Which cluster has each server and object, and who owns each cluster. No edit removes one, which would open it to everyone. */
interface Spec {
  readonly of: readonly string[];
  readonly objectsOf: readonly string[];
  readonly one: string;
  readonly two: string;
}

const NO_EDIT: Spec = { of: ["one", "one", "two"], objectsOf: ["one", "two"], one: "", two: "" };

/** One value of the spec changes. */
const EDIT = fc.oneof(
  fc.tuple(fc.nat(2), NAMES).map(
    ([at, name]) =>
      (spec: Spec): Spec => ({ ...spec, of: spec.of.with(at, name) }),
  ),
  fc.tuple(fc.nat(1), NAMES).map(
    ([at, name]) =>
      (spec: Spec): Spec => ({ ...spec, objectsOf: spec.objectsOf.with(at, name) }),
  ),
  fc.tuple(NAMES, fc.constantFrom(...CLUSTER_SUBSETS)).map(
    ([name, subset]) =>
      (spec: Spec): Spec => ({ ...spec, [name]: subset }),
  ),
);

function clustersBy(spec: Spec): ClusterRoute[] {
  return (["one", "two"] as const).flatMap((name) => {
    const servers = SERVERS.filter((_, at) => spec.of[at] === name);
    // A cluster has servers, so its objects may have to be those of the other one.
    const isAlone = servers.length === SERVERS.length;
    const objects = OBJECTS.filter((_, at) => isAlone || spec.objectsOf[at] === name);
    return servers.length === 0 ? [] : [{ ...cluster(name, spec[name], servers), objects }];
  });
}

function createWorld() {
  let spec = NO_EDIT;
  let desired: readonly ClusterRoute[] = [];
  const pods = createClusterPods<readonly ClusterRoute[], (spec: Spec) => Spec>({
    edit(change) {
      spec = change(spec);
      desired = clustersBy(spec);
    },
    claim,
    plan: (subset, claims) => planClusters(desired, claims).clustersOf(subset),
  });
  return { pods, desiredNow: () => desired };
}

const isGivenTo = (subset: string, routes: readonly ClusterRoute[], has: (cluster: ClusterRoute) => boolean | undefined) =>
  routes.some((each) => each.owner === subset && each.isFenced !== true && has(each) === true);

it("no two subsets may write to one server, or see one object, once one of them was given it, and each cluster ends with its owner", () => {
  fc.assert(
    fc.property(fc.array(podEvents(EDIT), { maxLength: 40, size: "max" }), (events) => {
      const { pods, desiredNow } = createWorld();
      const check = () => {
        for (const owner of pods.pods)
          for (const other of pods.pods) {
            if (owner.subset === other.subset) continue;
            for (const server of SERVERS) {
              const isGiven = routesOf(owner).some((routes) =>
                isGivenTo(owner.subset, routes, (each) => each.servers.includes(server)),
              );
              const isOpen = routesOf(other).some((clusters) => mayReach({ subset: other.subset, clusters }, server));
              expect(isGiven && isOpen).toBe(false);
            }
            for (const object of OBJECTS) {
              const isGiven = routesOf(owner).some((routes) =>
                isGivenTo(owner.subset, routes, (each) => each.objects?.includes(object)),
              );
              const isSeen = routesOf(other).some((clusters) => maySee({ subset: other.subset, clusters }, object));
              expect(isGiven && isSeen).toBe(false);
            }
          }
      };
      for (const event of events) {
        pods.step(event);
        check();
      }
      pods.settle();
      for (const pod of pods.pods) expect(pod.enforced).toEqual(desiredNow());
    }),
    { numRuns: 1_000 },
  );
});
