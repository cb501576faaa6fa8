import { expect, it } from "vitest";
import { callOf } from "../../../../test/support/layer-call.ts";
import { isResourceCall, type ResourceCall } from "../../call/call.ts";
import { askedInitialEvents, askedList } from "./collection-request.ts";

function call(query: string, method = "GET", path = "/api/v1/configmaps"): ResourceCall {
  const made = callOf(method, `${path}?${query}`);
  if (!isResourceCall(made)) throw new Error("no call for objects");
  return made;
}

it.each([
  ["", undefined, 0n],
  ["limit=500", undefined, 0n],
  ["resourceVersion=0", undefined, 0n],
  ["resourceVersion=0&limit=500", undefined, 0n],
  ["resourceVersion=0&resourceVersionMatch=NotOlderThan", undefined, 0n],
  ["resourceVersion=12", undefined, 12n],
  ["resourceVersion=12&resourceVersionMatch=NotOlderThan&limit=500", undefined, 12n],
  ["resourceVersion=12&resourceVersionMatch=Exact", 12n, 12n],
  ["resourceVersion=12&limit=500", 12n, 12n],
])("the list '%s' is of exactly %s, or not older than %s", (query, exact, atLeast) => {
  expect(askedList(call(query))).toMatchObject({ exact, atLeast });
});

it.each([
  ["a page", "continue=abc"],
  ["a few objects", "limit=1"],
  ["a limit that is no number", "limit=many"],
  ["a negative limit", "limit=-500"],
  ["its own shard selector", "shardSelector=x"],
  ["a printed form", "pretty=true"],
  ["a version of another storage", "resourceVersion=x"],
  ["what the API server refuses: a match without a version", "resourceVersionMatch=Exact"],
  ["what the API server refuses: exactly any version", "resourceVersion=0&resourceVersionMatch=Exact"],
  ["what the API server refuses: an unknown match", "resourceVersion=12&resourceVersionMatch=Roughly"],
  ["what the API server refuses: an unknown match with any version", "resourceVersion=0&resourceVersionMatch=Roughly"],
  ["a watch", "watch=1"],
])("a list with %s is sent as it is", (_what, query) => {
  expect(askedList(call(query))).toBeUndefined();
});

it("a list is sent as it is for HEAD, and for a client that tells listed objects apart", () => {
  expect(askedList(call("", "HEAD"))).toBeUndefined();
  const kopf = call("");
  expect(askedList({ ...kopf, record: { ...kopf.record, tellsListsApart: true } })).toBeUndefined();
});

it("lists with other selectors or in another form are kept apart, and other limits and versions are not", () => {
  const keyOf = (query: string) => askedList(call(query))?.key;
  expect(keyOf("limit=500&resourceVersion=0")).toBe(keyOf(""));
  for (const query of ["labelSelector=a", "fieldSelector=metadata.name%3Da", "includeObject=Object"])
    expect(keyOf(query)).not.toBe(keyOf(""));
  expect(["", "labelSelector=a", "fieldSelector=b"].map((query) => askedList(call(query))?.hasSelectors)).toEqual([
    false,
    true,
    true,
  ]);
});

it.each([
  ["sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 0n],
  ["sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", 0n],
  ["sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=12", 12n],
  ["sendInitialEvents&resourceVersionMatch=NotOlderThan&limit=1&timeoutSeconds=5", 0n],
  ["", 0n],
  ["resourceVersion=0", 0n],
])("the watch '%s' begins with what there is at a version not older than %s", (query, atLeast) => {
  expect(askedInitialEvents(call(`watch=1&${query}`))).toMatchObject({ exact: undefined, atLeast });
});

it.each([
  ["goes on from a version", "resourceVersion=12"],
  [
    "goes on from a version as the parameters say",
    "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=12",
  ],
  ["begins with what happens next", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"],
  ["has no match, which the API server refuses", "sendInitialEvents=true&resourceVersion=12"],
  ["has another match, which the API server refuses", "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=12"],
  ["has a match alone, which the API server refuses", "resourceVersionMatch=NotOlderThan"],
  ["has a version of another storage", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=x"],
  ["has its own shard selector", "shardSelector=x"],
])("a watch that %s is sent as it is", (_what, query) => {
  expect(askedInitialEvents(call(`watch=1&${query}`))).toBeUndefined();
});

it("a watch is sent as it is with the legacy path, for Tables, and for a client that tells listed objects apart", () => {
  expect(askedInitialEvents(call("", "GET", "/api/v1/watch/configmaps"))).toBeUndefined();
  const watch = call("watch=1");
  const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };
  expect(askedInitialEvents({ ...watch, headers: table })).toBeUndefined();
  expect(askedInitialEvents({ ...watch, record: { ...watch.record, tellsListsApart: true } })).toBeUndefined();
  expect(askedInitialEvents(call(""))).toBeUndefined();
});
