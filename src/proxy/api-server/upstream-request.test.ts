import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { isLongRunning } from "../../kube/request-kind.ts";
import { poolOf } from "./upstream-request.ts";

describe("pools", () => {
  it.each([
    ["GET", "/api/v1/pods", false, "list"],
    ["DELETE", "/api/v1/namespaces/a/pods", false, "list"],
    ["GET", "/api/v1/namespaces/a/pods/b", false, "short"],
    ["POST", "/api/v1/namespaces/a/pods", false, "short"],
    ["GET", "/version", false, "short"],
    ["GET", "/api/v1/namespaces/a/pods/b/log?follow=1", false, "stream"],
    ["PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", true, "lock"],
    ["GET", "/apis/coordination.k8s.io/v1/namespaces/a/leases?fieldSelector=metadata.name%3Db", true, "lock"],
  ])("%s %s (lock: %s) goes to %s", (method, target, lock, name) => {
    expect(poolOf({ decision: "forwarded", lock, info: parseRequestInfo(method, target) })).toBe(name);
  });
});

describe("isLongRunning", () => {
  it.each([
    ["/api/v1/pods?watch=1", true],
    ["/api/v1/watch/pods", true],
    ["/api/v1/namespaces/a/pods/b/log?follow=true", true],
    ["/api/v1/namespaces/a/pods/b/exec", true],
    ["/api/v1/namespaces/a/services/b/proxy/path", true],
    ["/api/v1/namespaces/a/pods/b/log", false],
    ["/api/v1/pods", false],
    ["/api/v1/namespaces/a/pods/b", false],
    ["/version", false],
  ])("%s: %s", (target, long) => {
    expect(isLongRunning(parseRequestInfo("GET", target))).toBe(long);
  });
});
