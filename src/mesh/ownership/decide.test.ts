import { describe, expect, it } from "vitest";
import { group, limit, objects, retained, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { BUCKETS, placeHash } from "../../kube/place.ts";
import { parseRequestInfo, type ResourceInfo } from "../../kube/request-info.ts";
import { type Decision, decide, isAct, isWithin, reachOf } from "./decide.ts";
import type { ResourceScope } from "./plan-query.ts";
import { governingPlace } from "./snapshot.ts";
import type { RouteTable } from "./table.ts";
import { viewOf } from "./view-of.ts";

const routes = table([subset("canary")], { prod: [], shop: [], pilot: [0] });

function ask(
  name: string,
  method: string,
  target: string,
  scope: ResourceScope = "namespaced",
  of: RouteTable = routes,
): Decision {
  const info = parseRequestInfo(method, target) as ResourceInfo;
  return decide(viewOf(snapshot(of, { subset: name }), info.group, info.resource), info, scope);
}

describe("a request for one object", () => {
  it("passes in an owned namespace, with every verb", () => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      expect(ask("", method, "/api/v1/namespaces/prod/pods/x")).toEqual({ kind: "allow" });
    }
    expect(ask("", "POST", "/api/v1/namespaces/prod/pods")).toEqual({ kind: "allow" });
  });
  it("is refused in a foreign namespace, with the owner's name, reads too", () => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      const decision = ask("", method, "/api/v1/namespaces/pilot/pods/x");
      expect(decision).toMatchObject({
        kind: "refuse",
        why: "other-subset",
        message: expect.stringContaining('subset "canary"'),
      });
    }
    expect(ask("canary", "POST", "/api/v1/namespaces/prod/pods")).toMatchObject({
      message: expect.stringContaining("the default subset"),
    });
  });
  it("is refused for subresources as for the object", () => {
    expect(ask("", "POST", "/api/v1/namespaces/pilot/pods/x/exec")).toMatchObject({ kind: "refuse" });
    expect(ask("", "PUT", "/apis/apps/v1/namespaces/pilot/deployments/x/status")).toMatchObject({ kind: "refuse" });
  });
  it("passes with a warning that names the owner where the guard only warns, except for reads and a deletecollection", () => {
    const moving = { ...routes, fenced: new Set(["prod"]) };
    const warned = (method: string, target: string, of = routes) => {
      const info = parseRequestInfo(method, target) as ResourceInfo;
      return decide(viewOf(snapshot(of, { guard: "Warn" }), info.group, info.resource), info, "namespaced");
    };
    const message = 'ctrlmesh: update pods "x": namespace "pilot" belongs to subset "canary"';
    expect(warned("PUT", "/api/v1/namespaces/pilot/pods/x")).toEqual({ kind: "warn", message });
    for (const target of ["pods/x", "pods/x/exec", "pods/x/status"]) {
      expect(warned("POST", `/api/v1/namespaces/pilot/${target}`).kind).toBe("warn");
    }
    expect(warned("GET", "/api/v1/namespaces/pilot/pods/x").kind).toBe("warn");
    expect(warned("GET", "/api/v1/namespaces/pilot/pods").kind).toBe("narrow");
    expect(warned("DELETE", "/api/v1/namespaces/pilot/pods").kind).toBe("refuse");
    expect(warned("DELETE", "/api/v1/pods")).toMatchObject({ why: "not-narrowable" });
    expect(warned("PUT", "/api/v1/namespaces/prod/pods/x").kind).toBe("allow");
    expect(warned("PUT", "/api/v1/namespaces/prod/pods/x", moving)).toMatchObject({ why: "moving" });
    expect(warned("PUT", "/api/v1/namespaces/new/pods/x").kind).toBe("hold");
    const family = table([sharded(group("", "pods")), subset("canary")], { gap: [], pilot: [0] });
    expect(warned("PUT", "/api/v1/namespaces/gap/pods/x", family)).toMatchObject({ kind: "warn" });
  });
  it("waits in a namespace that nobody has heard of", () => {
    expect(ask("", "GET", "/api/v1/namespaces/new/pods/x")).toEqual({ kind: "hold", namespace: "new" });
  });
  it("is refused for the time being in a namespace that moves", () => {
    const moving = { ...routes, fenced: new Set(["pilot"]) };
    expect(ask("canary", "PUT", "/api/v1/namespaces/pilot/pods/x", "namespaced", moving)).toMatchObject({ why: "moving" });
  });
  it("belongs to the default subset when it is cluster-scoped", () => {
    expect(ask("", "PUT", "/api/v1/nodes/n")).toEqual({ kind: "allow" });
    expect(ask("canary", "PUT", "/api/v1/nodes/n")).toMatchObject({ kind: "refuse" });
  });
  it("belongs to a shard, and the message says whose or that it is nobody's", () => {
    const maps = group("", "configmaps");
    const nodes = group("", "nodes");
    const family = table([sharded(maps, nodes), subset("s1"), subset("s2")], { "": [1], a: [1], b: [2], gap: [] });
    const put = (name: string, path: string) => ask(name, "PUT", `/api/v1/${path}`, "namespaced", family);
    expect([put("s1", "nodes/n"), put("s2", "namespaces/b/configmaps/x"), put("", "namespaces/gap/pods/x")]).toEqual(
      Array(3).fill({ kind: "allow" }),
    );
    expect(put("s2", "nodes/n")).toMatchObject({
      message: 'ctrlmesh: update nodes "n": this cluster-scoped object belongs to subset "s1"',
    });
    expect(put("s1", "namespaces/gap/configmaps/x")).toMatchObject({
      why: "other-subset",
      message: expect.stringMatching('"gap" belongs to nobody: no shard of this family contains namespace "gap"$'),
    });
    expect(put("s1", "namespaces/new/configmaps/x")).toEqual({ kind: "hold", namespace: "new" });
  });
  it("goes by the hash of its name where shards own cluster-scoped objects by name", () => {
    const foos = group("demo.io", "clusterfoos");
    const own = Object.fromEntries(BUCKETS.map((place) => [place, [placeHash(place) < 16 ? 1 : 2]]));
    const family = table([sharded(foos), subset("s1"), subset("s2")], { "": [1], ...own });
    // The hashes of "a" and "q" are 1 and 17.
    const of = (name: string, method: string, path: string) =>
      ask(name, method, `/apis/demo.io/v1/clusterfoos${path}`, "cluster", family);
    for (const [method, path] of [
      ["GET", ""],
      ["PUT", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["PUT", "/status"],
    ] as const) {
      expect([of("s1", method, `/a${path}`).kind, of("s2", method, `/q${path}`).kind]).toEqual(["allow", "allow"]);
      expect([of("s2", method, `/a${path}`).kind, of("s1", method, `/q${path}`).kind]).toEqual(["refuse", "refuse"]);
    }
    expect(of("s1", "DELETE", "/q")).toMatchObject({
      message: 'ctrlmesh: delete clusterfoos.demo.io "q": this cluster-scoped object belongs to subset "s2"',
    });
    // No query names the objects of a shard, and only the body of a create has the name.
    expect(of("s1", "DELETE", "")).toMatchObject({ why: "not-narrowable", message: expect.stringContaining("delete by name") });
    expect(of("s2", "DELETE", "")).toMatchObject({ why: "other-subset" });
    expect([of("s1", "POST", "").kind, of("s2", "POST", "").kind]).toEqual(["allow", "refuse"]);
    expect(of("s2", "GET", "?watch=1")).toMatchObject({ kind: "narrow", queryPlan: { namespacePlan: "none" } });
    const whole = { ...family, classOf: new Map([["", 0]]), classes: [[1]] };
    expect(ask("s1", "DELETE", "/apis/demo.io/v1/clusterfoos", "cluster", whole)).toEqual({ kind: "allow" });
  });
  it("goes by its own name when it is a namespace", () => {
    expect(ask("canary", "PATCH", "/api/v1/namespaces/pilot")).toEqual({ kind: "allow" });
    expect(ask("canary", "PUT", "/api/v1/namespaces/prod/finalize")).toMatchObject({ kind: "refuse" });
  });
});

describe("a project of OpenShift, which is a namespace by another name", () => {
  const PROJECTS = "/apis/project.openshift.io/v1/projects";

  it("goes by its own name", () => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      expect(ask("canary", method, `${PROJECTS}/pilot`)).toEqual({ kind: "allow" });
      expect(ask("", method, `${PROJECTS}/pilot`)).toMatchObject({ kind: "refuse", why: "other-subset" });
      expect(ask("", method, `${PROJECTS}/new`)).toEqual({ kind: "hold", namespace: "new" });
    }
  });
  it("is created and requested by the default subset alone, like a namespace", () => {
    for (const path of ["/api/v1/namespaces", PROJECTS, "/apis/project.openshift.io/v1/projectrequests"]) {
      expect(ask("", "POST", path)).toEqual({ kind: "allow" });
      expect(ask("canary", "POST", path)).toMatchObject({ kind: "refuse", why: "other-subset" });
    }
  });
  it("belongs with its namespace under rules for some resources, whatever they say of projects", () => {
    const namespaces = table([subset("canary", group("", "namespaces"))], { pilot: [0] });
    expect(ask("canary", "DELETE", `${PROJECTS}/pilot`, "cluster", namespaces)).toEqual({ kind: "allow" });
    const projects = table([subset("canary", group("project.openshift.io", "projects"))], { pilot: [0] });
    expect(ask("canary", "DELETE", `${PROJECTS}/pilot`, "cluster", projects)).toMatchObject({ kind: "refuse" });
  });
  it("is read in a collection without a field selector, and never deleted in one", () => {
    for (const query of ["", "?watch=1"]) {
      const decision = ask("canary", "GET", PROJECTS + query, "unknown");
      expect(decision).toMatchObject({ kind: "narrow", queryPlan: { namespacePlan: "none", fieldSelector: "" } });
      expect(decision).toEqual(ask("canary", "GET", `/api/v1/namespaces${query}`, "unknown"));
    }
    expect(ask("", "DELETE", PROJECTS, "cluster")).toMatchObject({ kind: "refuse", why: "not-narrowable" });
  });
  it("is retained with its namespace", () => {
    const lost = table([subset("canary")], { pilot: [] }, { retained: [retained(["pilot"])] });
    expect(ask("canary", "GET", `${PROJECTS}/pilot`, "cluster", lost)).toEqual({ kind: "allow" });
    expect(ask("canary", "PUT", `${PROJECTS}/pilot`, "cluster", lost)).toMatchObject({ kind: "refuse" });
  });
  it("is another resource in another group", () => {
    expect(ask("", "PUT", "/apis/example.com/v1/projects/pilot")).toEqual({ kind: "allow" });
  });
});

describe("a collection", () => {
  it("passes whole in an owned namespace", () => {
    expect(ask("canary", "GET", "/api/v1/namespaces/pilot/pods")).toEqual({ kind: "allow" });
    expect(ask("canary", "DELETE", "/api/v1/namespaces/pilot/pods")).toEqual({ kind: "allow" });
  });
  it("is narrowed to nothing in a foreign namespace, never refused", () => {
    const queryPlan = { scope: "unknown", namespacePlan: "nothing", fieldSelector: "metadata.namespace!=pilot", only: undefined };
    expect(ask("", "GET", "/api/v1/namespaces/pilot/pods")).toEqual({ kind: "narrow", queryPlan });
    expect(ask("", "GET", "/api/v1/namespaces/pilot/pods?watch=1")).toEqual({ kind: "narrow", queryPlan });
  });
  it("over all namespaces is pushed down to the one that is owned", () => {
    const queryPlan = { namespacePlan: "one-namespace", fieldSelector: "metadata.namespace=pilot", only: "pilot" };
    expect(ask("canary", "GET", "/api/v1/pods?watch=true")).toMatchObject({ kind: "narrow", queryPlan });
  });
  it("over all namespaces leaves out a small complement by name", () => {
    const queryPlan = { namespacePlan: "without-namespaces", fieldSelector: "metadata.namespace!=pilot", only: undefined };
    expect(ask("", "GET", "/api/v1/pods")).toMatchObject({ kind: "narrow", queryPlan });
  });
  it("of cluster-scoped or unknown resources is only filtered", () => {
    for (const scope of ["cluster", "unknown"] as const) {
      expect(ask("canary", "GET", "/api/v1/nodes", scope)).toMatchObject({
        kind: "narrow",
        queryPlan: { namespacePlan: "none" },
      });
    }
  });
  it("cannot be deleted over all namespaces, except what is cluster-scoped and owned", () => {
    expect(ask("canary", "DELETE", "/api/v1/pods")).toMatchObject({ kind: "refuse", why: "not-narrowable" });
    expect(ask("", "DELETE", "/api/v1/nodes", "cluster")).toEqual({ kind: "allow" });
    expect(ask("", "DELETE", "/api/v1/namespaces", "cluster")).toMatchObject({ kind: "refuse", why: "not-narrowable" });
  });
});

describe("an act", () => {
  const infoOf = (asked: string) => {
    const [method = "", target = ""] = asked.split(" ");
    return parseRequestInfo(method, target) as ResourceInfo;
  };
  const POD = "/api/v1/namespaces/a/pods/x";

  it.each(["exec", "attach", "portforward", "proxy", "proxy/restart", "anything"])("is %s by every method", (subresource) => {
    for (const method of ["GET", "HEAD", "POST"]) expect(isAct(infoOf(`${method} ${POD}/${subresource}`))).toBe(true);
  });
  it("is every write, but no review, list, watch or get of what is stored", () => {
    for (const asked of [`POST ${POD}/eviction`, `PUT ${POD}/status`, `DELETE ${POD}`, "DELETE /api/v1/pods"]) {
      expect(isAct(infoOf(asked))).toBe(true);
    }
    for (const asked of ["GET /api/v1/pods", "GET /api/v1/pods?watch=1", `GET ${POD}`, `HEAD ${POD}/status`, `GET ${POD}/log`]) {
      expect(isAct(infoOf(asked))).toBe(false);
    }
    expect(isAct(infoOf("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"))).toBe(false);
  });
  it("reaches one place, all namespaces, or everything, and what passes is within what is owned", () => {
    for (const [asked, scope, reach] of [
      [`PUT ${POD}`, "namespaced", "place"],
      ["DELETE /api/v1/namespaces/a/pods", "namespaced", "place"],
      ["DELETE /api/v1/pods", "namespaced", "all-namespaces"],
      ["DELETE /api/v1/pods", "unknown", "all-namespaces"],
      ["DELETE /api/v1/nodes", "cluster", "cluster-scope"],
      ["DELETE /api/v1/namespaces", "cluster", "all-namespaces"],
      ["GET /api/v1/nodes/n/proxy/pods", "unknown", "everything"],
    ] as const) {
      const info = infoOf(asked);
      expect([asked, reachOf(info, scope)]).toEqual([asked, reach]);
      for (const of of [routes, table([], { a: [] }), table([objects("canary", "a=b", group("", "pods"))], { a: [0] })]) {
        const view = viewOf(snapshot(of), info.group, info.resource);
        const namespace = governingPlace(info.group, info.resource, info);
        const { kind } = decide(view, info, scope);
        expect([asked, isWithin(view, reach, namespace)]).toEqual([asked, kind === "allow" || kind === "check-labels"]);
      }
    }
  });
});

describe("side doors", () => {
  it("a node's proxy reaches all pods and is refused unless the subset owns all of them", () => {
    expect(ask("", "GET", "/api/v1/nodes/n/proxy/pods")).toMatchObject({ kind: "refuse", why: "not-narrowable" });
  });
  it("a node's proxy passes in an app without any rule, which owns all there is", () => {
    const proxy = (name: string, of: RouteTable) => ask(name, "GET", "/api/v1/nodes/n/proxy/metrics", "namespaced", of).kind;
    expect(proxy("", table([], { prod: [] }))).toBe("allow");
    expect(proxy("canary", table([], { prod: [] }))).toBe("refuse");
    expect(proxy("", table([], { prod: [] }, { fenced: ["prod"] }))).toBe("refuse");
    expect(proxy("", table([subset("db", group("", "configmaps"))], { prod: [] }))).toBe("refuse");
  });
  it("access reviews pass in every subset", () => {
    expect(ask("canary", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")).toEqual({ kind: "allow" });
  });
  it("a global limit hides a namespace from everybody", () => {
    const limited = table([limit()], { prod: [0], system: [] });
    expect(ask("", "GET", "/api/v1/namespaces/system/pods/x", "namespaced", limited)).toMatchObject({
      message: expect.stringContaining("nobody in this app (outside of spec.route.globalLimits[0])"),
    });
  });
  it("a rule for one resource leaves the others alone", () => {
    const one = table([subset("db", group("", "configmaps"))], { data: [0] });
    expect(ask("", "GET", "/api/v1/pods", "namespaced", one)).toEqual({ kind: "allow" });
    expect(ask("db", "GET", "/api/v1/namespaces/data/configmaps/x", "namespaced", one)).toEqual({ kind: "allow" });
  });
});
