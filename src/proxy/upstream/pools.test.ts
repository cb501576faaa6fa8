import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { isLongRunning } from "./pools.ts";

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
