import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "./request-info.ts";
import { isEndless, mayUpgrade } from "./request-kind.ts";

const VM = "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/x";

describe("a request that may become a tunnel", () => {
  it.each([
    ["GET", "/api/v1/namespaces/a/pods/x/exec?command=ls"],
    ["POST", "/api/v1/namespaces/a/pods/x/portforward"],
    ["GET", "/api/v1/namespaces/a/services/x:http/proxy/socket"],
    ["GET", "/api/v1/nodes/n/proxy/exec/a/x"],
    ["GET", `${VM}/console`],
    ["GET", `${VM}/vnc`],
    ["GET", `${VM}/usbredir`],
    ["GET", `${VM}/portforward/22/tcp`],
    ["GET", "/apis/example.com/v1/clusterthings/x/attach"],
  ])("is for a subresource of one object: %s %s", (method, target) => {
    expect(mayUpgrade(parseRequestInfo(method, target))).toBe(true);
  });

  it.each([
    "/api/v1/namespaces/a/pods/x",
    "/api/v1/namespaces/a/pods",
    "/api/v1/pods?watch=1",
    "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Dx",
    "/api/v1/watch/namespaces/a/pods/x",
    "/api/v1/watch/namespaces/a/pods/x/exec",
    "/healthz/exec",
    "/apis/subresources.kubevirt.io/v1/version/x",
  ])("is for no object, collection or watch: %s", (target) => {
    expect(mayUpgrade(parseRequestInfo("GET", target))).toBe(false);
  });

  it.each(["status", "scale", "log?follow=1", "ephemeralcontainers", "finalize"])(
    "is not for the subresource %s, which is data over plain HTTP",
    (subresource) => {
      expect(mayUpgrade(parseRequestInfo("GET", `/api/v1/namespaces/a/pods/x/${subresource}`))).toBe(false);
    },
  );
});

describe("a request without an end of its own", () => {
  it("is every upgrade; without one, a subresource is not known to have no end", () => {
    expect(isEndless(parseRequestInfo("GET", `${VM}/console`, "websocket"))).toBe(true);
    expect(isEndless(parseRequestInfo("GET", `${VM}/console`))).toBe(false);
    expect(isEndless(parseRequestInfo("GET", "/api/v1/namespaces/a/pods/x/exec"))).toBe(true);
  });
});
