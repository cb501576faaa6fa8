import { expect, it } from "vitest";
import { egressRequest, policyRequest } from "../../test/support/policies.ts";
import { collectGarbage } from "../base/collect-garbage.ts";
import { parseRequestInfo } from "../kube/request-info.ts";
import { policyRequestOf } from "./policy-request.ts";

const LONG = "x".repeat(100_000);

it.each([
  ["a path of the API server", () => policyRequest(`GET /metrics/${LONG}`)],
  ["an object", () => policyRequest(`GET /api/v1/namespaces/a/pods/${LONG}`)],
  ["a group, a resource and a namespace", () => policyRequest(`GET /apis/${LONG}/v1/namespaces/${LONG}/${LONG}/x`)],
  ["a path of another server", () => egressRequest(`GET http://a.example/${LONG}`)],
])("the key of a request for %s with a very long name is short, and keeps nothing else alive (D18)", (_, request) => {
  expect(request().key.length).toBeLessThanOrEqual(1_024);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const keys = Array.from({ length: 200 }, () => request().key);
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2_000_000);
  expect(new Set(keys).size).toBe(1);
});

it("each spelling of a path has the same key, so that it shares the failures", () => {
  expect(policyRequest("GET /%6detrics/").key).toBe(policyRequest("GET /metrics").key);
  expect(egressRequest("GET http://a.example//%76%31/").key).toBe(egressRequest("GET http://a.example/v1").key);
});

it.each([
  ["DELETE /api/v1/namespaces/a/pods/p", ["p"]],
  ["POST /api/v1/namespaces/a/pods/p/eviction", ["p", "p"]],
  ["DELETE /api/v1/namespaces/a/pods", ["", ""]],
  ["DELETE /api/v1/namespaces/prod", ["prod"]],
])("the actions of %s have the name of the object", (line, names) => {
  expect(policyRequest(line).actions.map(({ name }) => name)).toEqual(names);
});

it("who sends a request is read once, however many rules ask", () => {
  let reads = 0;
  const request = policyRequestOf(parseRequestInfo("GET", "/api/v1/namespaces/a/pods/p"), false, () => `user-${++reads}`);
  expect(reads).toBe(0);
  expect([request.user?.(), request.user?.()]).toEqual(["user-1", "user-1"]);
});
