import { describe, expect, it } from "vitest";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { RouteTable } from "../../route/table.ts";
import { createStore } from "../../runtime/store.ts";
import { createRoutes } from "./routes.ts";
import { createVirtualAppSource } from "./virtual-app/virtual-app-source.ts";

const REF = { namespace: "ops", name: "shop" };
const { signal } = new AbortController();
const route = { subRules: [{ name: "gold", match: [{ namespaceSelector: { matchLabels: { tier: "gold" } } }] }] };
const subsets = [{ name: "canary", labels: { version: "v2" }, routeRules: ["gold"] }];
const namespace = (name: string, labels: Record<string, string> = {}, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels, annotations },
});

function setUp() {
  const client = createFakeKubeClient();
  const namespaces = createStore<KubeObject>(() => {});
  namespaces.replace([namespace("a"), namespace("b", { tier: "gold" })]);
  const routes = createRoutes({ client, source: createVirtualAppSource(), namespaces });
  const put = (generation: number, spec: object = {}, uid = "uid") => {
    const metadata = { ...REF, uid, generation };
    return client.put(VIRTUAL_APPS, { ...sampleVirtualApp({ route, subsets, ...spec }), metadata } as unknown as VirtualApp);
  };
  const read = async (object: VirtualApp) => {
    const app = appOf(object);
    if (app.spec === undefined) throw new Error(app.problems.join("; "));
    return routes.tableOf(app, app.spec, signal);
  };
  const tableOf = async (object: VirtualApp) => (await read(object)) as RouteTable;
  const reads = () => client.calls.filter(({ verb }) => verb === "get").length;
  return { client, namespaces, routes, put, read, tableOf, reads };
}

describe("the desired route table", () => {
  it("is the same object while the spec and the namespaces stay the same, and is checked once", async () => {
    const { namespaces, put, tableOf, reads } = setUp();
    const object = put(1);
    const table = await tableOf(object);
    namespaces.upsert(namespace("a", {}, { note: "an annotation is no matter" }));
    expect(await tableOf(object)).toBe(table);
    expect(reads()).toBe(1);
  });

  it.each([
    ["a namespace is born", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("c"))],
    ["a namespace is gone", (store: ReturnType<typeof setUp>["namespaces"]) => store.remove(namespace("a"))],
    ["a label changes", (store: ReturnType<typeof setUp>["namespaces"]) => store.upsert(namespace("a", { tier: "gold" }))],
  ])("is compiled again when %s", async (_what, change) => {
    const { namespaces, put, tableOf, reads } = setUp();
    const object = put(1);
    const before = await tableOf(object);
    change(namespaces);
    const after = await tableOf(object);
    expect(after).not.toBe(before);
    expect([...after.classOf.keys()]).toEqual(namespaces.list().map(({ metadata }) => metadata.name));
    expect(reads()).toBe(2);
  });

  it("is compiled again for another spec, and for an app that was created again under its name", async () => {
    const { put, tableOf } = setUp();
    const before = await tableOf(put(1));
    expect((await tableOf(put(2, { route: {}, subsets: [] }))).rules).toEqual([]);
    expect(await tableOf(put(1, {}, "uid-2"))).not.toBe(before);
  });

  it("is not used if the API server has a newer spec, which `newest` returns until the watch brings it", async () => {
    const { routes, put, read } = setUp();
    const seen = put(1);
    const newer = put(2);
    expect(await read(seen)).toBe("edited");
    const newest = (object: VirtualApp) => routes.newest(appOf(object))?.object;
    expect(newest(seen)).toEqual(newer);
    const third = put(3);
    expect(newest(third)).toBe(third);
    expect(newest(seen)).toBe(seen);
  });

  it("is not used if the object is gone, or another object has its name", async () => {
    const { client, put, read } = setUp();
    const seen = put(1);
    client.remove(VIRTUAL_APPS, REF);
    expect(await read(seen)).toBe("gone");
    put(1, {}, "uid-2");
    expect(await read(seen)).toBe("gone");
  });
});
