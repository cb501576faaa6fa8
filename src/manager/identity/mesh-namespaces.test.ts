import { beforeEach, expect, it } from "vitest";
import { CONFIG_MAPS, type ConfigMap } from "../../kube/client/resources.ts";
import { createStore } from "../../runtime/store.ts";
import { createMeshNamespaces } from "./mesh-namespaces.ts";

const bundle = (labels?: Record<string, string>): ConfigMap => ({
  metadata: { name: "ctrlmesh-ca", namespace: "shop", uid: "1", resourceVersion: "1", ...(labels && { labels }) },
});
const OF_MANAGER = { "app.kubernetes.io/managed-by": "ctrlmesh-manager" };

const configMaps = createStore<ConfigMap>((error) => {
  throw error;
});
const apps = { hasSynced: true, list: (): never[] => [] };
const informers = { store: (resource: unknown) => (resource === CONFIG_MAPS ? configMaps : undefined) } as never;
const isOfMesh = createMeshNamespaces(apps, informers);

beforeEach(() => configMaps.replace([]));

it("a namespace with an app is of the mesh, also before the rest is listed", () => {
  const early = { hasSynced: false, list: () => [{}] as never[] };
  expect(createMeshNamespaces(early, informers)("shop")).toBe(true);
});

it("a namespace without an app is not known until everything is listed, and then is not of the mesh", () => {
  expect(createMeshNamespaces({ ...apps, hasSynced: false }, informers)("shop")).toBeUndefined();
  expect(isOfMesh("shop")).toBe(false);
});

it("a namespace whose app is gone is of the mesh until the manager removes its bundle", () => {
  configMaps.replace([bundle(OF_MANAGER)]);
  expect(isOfMesh("shop")).toBe(true);
  expect(isOfMesh("other")).toBe(false);
});

it("a user's ConfigMap of that name proves nothing", () => {
  configMaps.replace([bundle()]);
  expect(isOfMesh("shop")).toBe(false);
});
