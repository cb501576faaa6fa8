import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fence, group, limit, objects, retained, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { BUCKETS } from "../../kube/place.ts";
import { parseRequestInfo, type ResourceInfo } from "../../kube/request-info.ts";
import { decide, isAct, isWithin, reachOf } from "./decide.ts";
import { governingPlace, type Snapshot } from "./snapshot.ts";
import { viewOf } from "./view-of.ts";

const RULES = [subset("canary"), objects("canary", "tier in (gold)", group("", "secrets"))];
const divided = table(RULES, { prod: [], pilot: [0] });
const FROZEN = { frozen: [{ namespace: "prod", reason: "restore of the database" }] };

function ask(method: string, target: string, more: Partial<Snapshot> = {}) {
  const info = parseRequestInfo(method, target) as ResourceInfo;
  return decide(viewOf(snapshot(divided, { ...FROZEN, ...more }), info.group, info.resource), info, "namespaced");
}

describe("in a frozen namespace", () => {
  it("its owner reads, follows logs and lists as before", () => {
    for (const target of ["pods/x", "pods/x/log?follow=true", "pods", "pods?watch=1", ""])
      expect(ask("GET", `/api/v1/namespaces/prod/${target}`.replace(/\/$/, "")).kind).toBe("allow");
    expect(ask("GET", "/api/v1/pods").kind).toBe("narrow");
  });
  it("nothing is written, deleted, evicted or run by its owner, and the message has the reason", () => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"])
      expect(ask(method, "/api/v1/namespaces/prod/pods/x").kind).toBe("frozen");
    expect(ask("POST", "/api/v1/namespaces/prod/pods/x/eviction").kind).toBe("frozen");
    expect(ask("GET", "/api/v1/namespaces/prod/pods/x/exec").kind).toBe("frozen");
    expect(ask("DELETE", "/api/v1/namespaces/prod").kind).toBe("frozen");
    expect(ask("PUT", "/api/v1/namespaces/prod/secrets/x").kind).toBe("frozen");
    expect(ask("DELETE", "/api/v1/namespaces/prod/pods/x")).toEqual({
      kind: "frozen",
      namespace: "prod",
      message: 'ctrlmesh: delete pods "x": namespace "prod" is frozen: restore of the database',
    });
  });
  it("the guard Warn lets nothing pass", () => {
    const of = { guard: "Warn", subset: "canary" } as const;
    expect(ask("PUT", "/api/v1/namespaces/prod/pods/x", of).kind).toBe("frozen");
  });
  it("nothing is written by an app without any rules either", () => {
    expect(ask("PUT", "/api/v1/namespaces/prod/pods/x", { table: table([], {}) }).kind).toBe("frozen");
    expect(ask("GET", "/api/v1/pods", { table: table([], {}) }).kind).toBe("allow");
  });
});

it("outside of a frozen namespace writes pass, also to cluster-scoped objects, reviews and namespaces that are not known", () => {
  expect(ask("PUT", "/api/v1/nodes/n").kind).toBe("allow");
  expect(ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews").kind).toBe("allow");
  expect(ask("PUT", "/api/v1/namespaces/pilot/pods/x", { subset: "canary" }).kind).toBe("allow");
  expect(ask("PUT", "/api/v1/namespaces/new/pods/x").kind).toBe("hold");
});

it("what reaches every namespace is refused while one is frozen", () => {
  const whole = { table: table([], {}) };
  expect(ask("DELETE", "/api/v1/pods", whole)).toMatchObject({
    kind: "frozen",
    message:
      'ctrlmesh: deletecollection pods: it reaches every namespace, and namespace "prod" is frozen: restore of the database',
  });
  expect(ask("POST", "/api/v1/nodes/n/proxy/run", whole).kind).toBe("frozen");
});

it("a write that is allowed never counts as refused, and one in a frozen namespace always does, so a drain waits for it", () => {
  const target = fc.constantFrom("/namespaces/prod/pods/x", "/namespaces/pilot/pods/x", "/pods", "/nodes/n", "/namespaces/prod");
  const states = fc.record({
    frozen: fc.subarray(["prod", "pilot", "new"]).map((names) => names.map((namespace) => ({ namespace, reason: "x" }))),
    guard: fc.constantFrom(undefined, "Warn" as const),
    subset: fc.constantFrom("", "canary"),
    table: fc.constantFrom(divided, table([], {})),
  });
  fc.assert(
    fc.property(states, target, fc.constantFrom("PUT", "DELETE"), (state, path, method) => {
      const info = parseRequestInfo(method, `/api/v1${path}`) as ResourceInfo;
      const view = viewOf(snapshot(state.table, state), info.group, info.resource);
      const { kind } = decide(view, info, "namespaced");
      const reach = kind === "warn" ? "foreign" : reachOf(info, "namespaced");
      const place = governingPlace(info.group, info.resource, info);
      if (!isAct(info)) return;
      if (kind === "allow" || kind === "warn") expect(isWithin(view, reach, place)).toBe(true);
      if (kind === "frozen") expect(isWithin(view, reach, place)).toBe(false);
    }),
    { numRuns: 500 },
  );
});

it("a freeze only ever refuses more, and then whatever acts in the frozen namespaces", () => {
  const buckets = Object.fromEntries(BUCKETS.map((place, hash) => [place, [hash % 2 === 0 ? 1 : 2]]));
  const byName = table([sharded(group("", "nodes", "pods")), subset("a"), subset("canary")], {
    "": [1],
    ...buckets,
    prod: [1],
    pilot: [2],
  });
  const tables = [
    divided,
    byName,
    table([], {}),
    table([limit(group("", "pods")), ...RULES], { prod: [1], pilot: [0] }),
    table(RULES, { prod: [0], pilot: [0] }, { fenced: ["prod"], retained: [retained(["pilot"])] }),
    table([...RULES, fence(group("", "secrets"))], { prod: [0] }),
    table([objects("canary", "tier=gold")], { prod: [], pilot: [] }),
  ];
  const names = ["prod", "pilot", "new"];
  const place = fc.constantFrom("", ...names.map((name) => `/namespaces/${name}`));
  const resource = fc.constantFrom("/pods", "/secrets", "/nodes", "/events", "/bindings", "");
  const rest = fc.constantFrom(
    "",
    "/x",
    "/x/status",
    "/x/exec",
    "/x/log",
    "/x/proxy/run",
    "/x/eviction",
    "?labelSelector=a",
    "?watch=1",
  );
  const target = fc.tuple(place, resource, rest).map((parts) => `/api/v1${parts.join("")}`);
  const method = fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE");
  const frozen = fc.subarray(names, { minLength: 1 });
  const state = fc.record({ guard: fc.constantFrom(undefined, "Warn" as const), subset: fc.constantFrom("", "canary", "a") });
  const scopes = fc.constantFrom("cluster" as const, "namespaced" as const, "unknown" as const);
  fc.assert(
    fc.property(fc.constantFrom(...tables), state, frozen, method, target, scopes, (routes, more, names, verb, path, scope) => {
      if (path === "/api/v1" || path.startsWith("/api/v1/x") || path.startsWith("/api/v1?")) return;
      const info = parseRequestInfo(verb, path) as ResourceInfo;
      const reasons = names.map((namespace) => ({ namespace, reason: "x" }));
      const ofRoutes = (of: Partial<Snapshot>) =>
        decide(viewOf(snapshot(routes, { ...more, ...of }), info.group, info.resource), info, scope);
      const now = ofRoutes({ frozen: reasons });
      if (now.kind !== "frozen") expect(JSON.stringify(now)).toBe(JSON.stringify(ofRoutes({})));
      expect(now.kind === "frozen").toBe(isAct(info) && reachesFrozen(info, names, scope));
    }),
    { numRuns: 3_000 },
  );
});

/** Without the code under test: what a person would call a write in one of the namespaces. */
function reachesFrozen({ path, verb, resource }: ResourceInfo, names: readonly string[], scope: string): boolean {
  if (resource === "nodes" && path.includes("/proxy")) return true;
  if (/\/namespaces\/\w+/.test(path)) return names.some((name) => new RegExp(`/namespaces/${name}(/|$)`).test(path));
  return verb === "deletecollection" && (scope !== "cluster" || resource === "namespaces");
}
