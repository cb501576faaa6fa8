import { expect, it } from "vitest";
import { callOf, fakeUpstream, jsonReply } from "../../../test/support/layer-call.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { requestInfo, watchDeadlineMs } from "./request-info.ts";

async function forwarded(method: string, target: string): Promise<string | undefined> {
  const upstream = fakeUpstream(() => jsonReply({}));
  const { info: _, ...raw } = callOf(method, target);
  await requestInfo(upstream)(raw);
  const [call] = upstream.calls;
  expect(call?.info).toBe(call?.record.info);
  return call?.target;
}

it("sends the query of a collection as it was read, not as it came", async () => {
  expect(await forwarded("GET", "/api/v1/pods?&watch=0&watch=1&labelSelector=a%3D%62+c&")).toBe(
    "/api/v1/pods?watch=0&watch=1&labelSelector=a%3Db+c",
  );
});

it("leaves the query of a named object alone, which nothing is decided by", async () => {
  const target = "/api/v1/namespaces/a/services/x/proxy/search?q&x=%20y";
  expect(await forwarded("GET", target)).toBe(target);
});

it("leaves a request without a query alone", async () => {
  expect(await forwarded("GET", "/api/v1/pods")).toBe("/api/v1/pods");
  expect(await forwarded("GET", "/version?timeout=1")).toBe("/version?timeout=1");
});

it.each([
  ["timeoutSeconds=300", 330_000],
  ["timeoutSeconds=0", 7_200_000],
  ["timeoutSeconds=x", 7_200_000],
  ["", 7_200_000],
  ["timeoutSeconds=99999999999", 2 ** 31 - 1],
])("a watch with %j is ended by the proxy after %d ms", (query, expected) => {
  expect(watchDeadlineMs(parseRequestInfo("GET", `/api/v1/pods?watch=1&${query}`))).toBe(expected);
});
