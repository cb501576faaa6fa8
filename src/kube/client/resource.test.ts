import { expect, test } from "vitest";
import { collectionPath, formatQuery, metadataOnly, objectPath } from "./resource.ts";
import { LEASES, NAMESPACES, PODS } from "./resources.ts";

test("a path has the group, version, namespace and subresource", () => {
  expect(collectionPath(PODS)).toBe("/api/v1/pods");
  expect(collectionPath(PODS, "a")).toBe("/api/v1/namespaces/a/pods");
  expect(objectPath(LEASES, { namespace: "a", name: "lock" })).toBe("/apis/coordination.k8s.io/v1/namespaces/a/leases/lock");
  expect(objectPath(NAMESPACES, { name: "a" }, "status")).toBe("/api/v1/namespaces/a/status");
  expect(objectPath(NAMESPACES, { name: "a", namespace: "ignored" })).toBe("/api/v1/namespaces/a");
});

test("a name cannot leave its path segment", () => {
  expect(objectPath(PODS, { namespace: "a", name: "x/../../secrets" })).toBe("/api/v1/namespaces/a/pods/x%2F..%2F..%2Fsecrets");
  expect(() => objectPath(PODS, { namespace: "a", name: ".." })).toThrow("not a valid name");
  expect(() => objectPath(PODS, { namespace: "..", name: "x" })).toThrow("not a valid name");
});

test("an object without name, or without the namespace it needs, cannot be addressed", () => {
  expect(() => objectPath(PODS, { name: "x" })).toThrow("must be given");
  expect(() => objectPath(PODS, { namespace: "a", name: "" })).toThrow("must be given");
  expect(() => collectionPath(NAMESPACES, "a")).toThrow("no namespaces");
});

test("a query leaves out absent values and escapes the others", () => {
  expect(formatQuery({ limit: 500, watch: false, labelSelector: "a in (b,c)", continue: "", force: true, x: undefined })).toBe(
    "?limit=500&labelSelector=a+in+%28b%2Cc%29&force=true",
  );
  expect(formatQuery({})).toBe("");
});

test("the metadata form of a kind has the same address", () => {
  expect(metadataOnly(PODS)).toEqual({ ...PODS, metadataOnly: true });
});
