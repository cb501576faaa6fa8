import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRequestInfo, type ResourceInfo } from "../../kube/request-info.ts";
import { eventWriteOf, isOwnSubject, leavesSubject } from "./own-events.ts";

const APP = { podNamespace: "shop", lockName: "shop-lock" };
const CORE = "/api/v1/namespaces/shop/events";
const NEW = "/apis/events.k8s.io/v1/namespaces/shop/events";
const writeOf = (method: string, target: string) => eventWriteOf(APP, parseRequestInfo(method, target) as ResourceInfo);
const isOwn = (subject: object) =>
  isOwnSubject(APP, "shop-0", { apiVersion: "v1", kind: "", namespace: "shop", name: "", ...subject });

describe("the write of an Event in the pods' namespace", () => {
  it("is a create or a patch, by both groups", () => {
    expect(writeOf("POST", CORE)).toEqual({ verb: "create", field: "involvedObject" });
    expect(writeOf("PATCH", `${CORE}/a.1`)).toEqual({ verb: "patch", field: "involvedObject" });
    expect(writeOf("POST", `${NEW}?fieldManager=x`)).toEqual({ verb: "create", field: "regarding" });
    expect(writeOf("PATCH", `${NEW}/a.1`)).toEqual({ verb: "patch", field: "regarding" });
  });
  it.each([
    ["GET", CORE],
    ["GET", `${CORE}/a.1`],
    ["PUT", `${CORE}/a.1`],
    ["DELETE", `${CORE}/a.1`],
    ["DELETE", CORE],
    ["POST", `${CORE}/a.1`],
    ["POST", `${CORE}/a.1/status`],
    ["PATCH", `${CORE}/a.1/status`],
    ["POST", "/api/v1/namespaces/other/events"],
    ["POST", "/api/v1/events"],
    ["POST", "/apis/example.com/v1/namespaces/shop/events"],
    ["POST", "/api/v1/namespaces/shop/configmaps"],
  ])("is not %s %s", (method, target) => {
    expect(writeOf(method, target)).toBeUndefined();
  });
});

describe("an Event about the operator itself", () => {
  it("is about its pod, or about its lock by the name that the operator knows", () => {
    expect(isOwn({ kind: "Pod", name: "shop-0" })).toBe(true);
    expect(isOwn({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", name: "shop-lock" })).toBe(true);
    expect(isOwn({ kind: "ConfigMap", name: "shop-lock" })).toBe(true);
    expect(isOwn({ kind: "Endpoints", name: "shop-lock" })).toBe(true);
  });
  it.each([
    { kind: "Pod", name: "shop-1" },
    { kind: "Pod", name: "shop-lock" },
    { kind: "Pod", name: "shop-0", namespace: "other" },
    { kind: "Pod", name: "shop-0", apiVersion: "" },
    { kind: "Pod", name: "shop-0", apiVersion: "v9" },
    { kind: "Endpoints", name: "shop-lock", apiVersion: " " },
    { kind: "Pod", name: "shop-0", apiVersion: "example.com/v1" },
    { kind: "Lease", name: "shop-lock" },
    { kind: "Lease", name: "shop-lock", apiVersion: "example.com/v1" },
    { kind: "Lease", name: "other-lock", apiVersion: "coordination.k8s.io/v1" },
    { kind: "Lease", name: "shop-lock", apiVersion: "coordination.k8s.io/v1", namespace: "other" },
    { kind: "Deployment", name: "shop-lock", apiVersion: "apps/v1" },
    { kind: "Secret", name: "shop-lock" },
  ])("is not about %o", (subject) => {
    expect(isOwn(subject)).toBe(false);
  });
  it("is never about a lock if the app names none", () => {
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", namespace: "shop", name: "" };
    expect(isOwnSubject({ ...APP, lockName: "" }, "shop-0", lease)).toBe(false);
  });
  it("is, whatever a request names, about no other object, in no other namespace and by no other verb", () => {
    const text = (...own: string[]) => fc.oneof(fc.constantFrom(...own), fc.string({ maxLength: 5 }));
    const subject = fc.record({
      apiVersion: text("v1", "coordination.k8s.io/v1", "apps/v1", ""),
      kind: text("Pod", "Lease", "ConfigMap", "Endpoints", "Deployment"),
      namespace: text("shop", "other", ""),
      name: text("shop-0", "shop-1", "shop-lock", "shop-lock---canary", ""),
    });
    const request = fc.record({
      verb: fc.constantFrom("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
      group: text("", "events.k8s.io", "apps"),
      resource: text("events", "pods"),
      namespace: text("shop", "other", ""),
      subresource: text("", "status"),
      nameInPath: fc.boolean(),
    });
    const own = ["v1 Pod shop-0", "coordination.k8s.io/v1 Lease shop-lock", "v1 ConfigMap shop-lock", "v1 Endpoints shop-lock"];
    fc.assert(
      fc.property(subject, request, (of, info) => {
        const isNamedSo = own.includes(`${of.apiVersion} ${of.kind} ${of.name}`);
        expect(isOwnSubject(APP, "shop-0", of)).toBe(isNamedSo && of.namespace === "shop");
        const isEvent = info.resource === "events" && ["", "events.k8s.io"].includes(info.group);
        const isWrite = info.verb === "patch" || (info.verb === "create" && !info.nameInPath);
        const passes = isEvent && isWrite && info.namespace === "shop" && info.subresource === "";
        expect(eventWriteOf(APP, info as ResourceInfo) !== undefined).toBe(passes);
      }),
    );
  });
});

it("a patch leaves the subject unless it names it, in any case, or replaces the whole Event", () => {
  expect(leavesSubject({ count: 2, message: "again", metadata: { labels: {} } })).toBe(true);
  for (const key of ["involvedObject", "regarding", "InvolvedObject", "$patch", "$retainKeys"])
    expect(leavesSubject({ count: 2, [key]: null }), key).toBe(false);
  for (const patch of [undefined, null, [], "text", 1]) expect(leavesSubject(patch)).toBe(false);
});
