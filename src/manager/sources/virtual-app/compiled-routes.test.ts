import { describe, expect, it } from "vitest";
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { createStore } from "../../../runtime/store.ts";
import { createCompiledRoutes } from "./compiled-routes.ts";

const spec: VirtualAppSpec = {
  selector: { matchLabels: { app: "shop" } },
  route: { subRules: [{ name: "gold", match: [{ namespaceSelector: { matchLabels: { tier: "gold" } } }] }] },
  subsets: [{ name: "canary", labels: { version: "v2" }, routeRules: ["gold"] }],
};
const namespace = (name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels, annotations },
});

function setUp() {
  const namespaces = createStore<KubeObject>(() => {});
  namespaces.replace([namespace("a"), namespace("b", { tier: "gold" })]);
  return { namespaces, routes: createCompiledRoutes(namespaces) };
}

describe("the compiled route", () => {
  it("is the same object as long as the spec and the namespaces are the same", () => {
    const { namespaces, routes } = setUp();
    const table = routes.of("ns/shop", "uid/1", spec);
    namespaces.upsert(namespace("a", {}, { note: "an annotation is no matter" }));
    expect(routes.of("ns/shop", "uid/1", spec)).toBe(table);
  });

  it.each([
    ["a namespace is born", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("c"))],
    ["a namespace is gone", (store: ReturnType<typeof setUp>["namespaces"]) => store.remove(namespace("a"))],
    ["a label changes", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("a", { tier: "gold" }))],
  ])("is made anew when %s", (_what, change) => {
    const { namespaces, routes } = setUp();
    const before = routes.of("ns/shop", "uid/1", spec);
    change(namespaces);
    const after = routes.of("ns/shop", "uid/1", spec);
    expect(after).not.toBe(before);
    expect([...after.classOf.keys()]).toEqual(namespaces.list().map(({ metadata }) => metadata.name));
  });

  it("is made anew for another spec, and for an app of the same name that was made anew", () => {
    const { routes } = setUp();
    const before = routes.of("ns/shop", "uid/1", spec);
    expect(routes.of("ns/shop", "uid/2", { ...spec, subsets: [] }).rules).toEqual([]);
    expect(routes.of("ns/shop", "uid-2/1", spec)).not.toBe(before);
  });
});
