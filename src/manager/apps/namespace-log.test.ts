import { expect, it } from "vitest";
import type { KubeObject } from "../../kube/types.ts";
import { createStore } from "../../runtime/store.ts";
import { createNamespaceLog } from "./namespace-log.ts";

const namespace = (name: string, labels: Record<string, string> = {}): KubeObject => ({ metadata: { name, uid: name, labels } });

function setUp(readsNamespaceLabels: boolean) {
  const store = createStore<KubeObject>(() => undefined);
  store.replace([namespace("a"), namespace("b")]);
  return { store, log: createNamespaceLog({ readsNamespaceLabels }, store) };
}

it("has births, deaths and changed labels, each name once", () => {
  const { store, log } = setUp(true);
  const { count } = log;
  expect(log.since(count)).toEqual(new Set());
  store.upsert(namespace("c"));
  store.upsert(namespace("c", { tier: "gold" }));
  store.remove(namespace("b"));
  store.upsert(namespace("a", {}));
  expect(log.since(count)).toEqual(new Set(["c", "b"]));
  expect(log.since(log.count)).toEqual(new Set());
});

it("has no labels for routes that read none, so a change of them makes no table outdated", () => {
  const { store, log } = setUp(false);
  const { count } = log;
  store.upsert(namespace("a", { tier: "gold" }));
  expect([log.count, log.since(count)]).toEqual([count, new Set()]);
  store.upsert(namespace("c"));
  store.remove(namespace("c"));
  expect(log.since(count)).toEqual(new Set(["c"]));
});

it("does not answer about changes that it has forgotten, and forgets none of the last 2,048", () => {
  const { store, log } = setUp(false);
  const { count } = log;
  for (let at = 0; at < 20_000; at++) store.upsert(namespace(`n${at}`));
  expect(log.since(count)).toBeUndefined();
  expect(log.since(log.count - 2_048)?.size).toBe(2_048);
});
