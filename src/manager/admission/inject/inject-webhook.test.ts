import { beforeEach, describe, expect, it } from "vitest";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { appOf, appsIn } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { createStore, type WritableStore } from "../../../runtime/store.ts";
import type { Apps } from "../../apps/app.ts";
import type { InjectionSettings } from "../../injection/injection.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import { createAdmitWebhook, createInjectWebhook } from "./inject-webhook.ts";

const SETTINGS: InjectionSettings = {
  proxyImage: "ctrlmesh/proxy:1",
  managerAddress: "ctrlmesh-manager.ctrlmesh-system.svc:5447",
  nativeSidecars: true,
  kubernetesService: { ips: ["10.0.0.1"], port: 443 },
};
const TOKEN = { name: "kube-api-access-x", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };
const MOUNT = { name: TOKEN.name, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
const pod = (labels: object = { component: "shop" }, spec: object = {}) => ({
  metadata: { generateName: "shop-", labels },
  spec: {
    containers: [{ name: "operator", image: "shop:1", volumeMounts: [MOUNT] }],
    serviceAccountName: "shop",
    volumes: [TOKEN],
    ...spec,
  },
});

describe("the injecting webhook", () => {
  let apps: WritableStore<VirtualApp>;
  let settings: InjectionSettings | undefined;
  /** The API server's object, if it differs from the store's. */
  let newest: { readonly app: VirtualApp | undefined } | undefined;

  beforeEach(() => {
    apps = createStore((error) => {
      throw error;
    });
    settings = SETTINGS;
    newest = undefined;
    listed = undefined;
  });

  const app = (name: string, metadata: object = {}, spec: Readonly<Record<string, unknown>> = {}) =>
    ({
      ...sampleVirtualApp(spec),
      metadata: { namespace: "ops", name, uid: name, resourceVersion: "1", ...metadata },
    }) as unknown as VirtualApp;
  let listed: Apps["list"] | undefined;
  const ask = (object: object = pod(), more: Partial<AdmissionRequest> = {}, caller = CALLER) => {
    const resource = { group: "", version: "v1", resource: "pods" };
    const request: AdmissionRequest = { uid: "u", resource, operation: "CREATE", namespace: "ops", object, ...more };
    const found = () => (newest === undefined ? apps.get("shop", "ops") : newest.app);
    const read = async () => found() && appOf(found());
    return createInjectWebhook({
      apps: { ...appsIn(apps), hasSynced: apps.hasSynced, ...(listed && { list: listed }) },
      read,
      keepRevision: async () => undefined,
      settings: () => settings,
    })({ namespace: "ops", name: "shop" })(request, caller);
  };
  const patched = (answer: AdmissionAnswer) => (answer.allowed ? (answer.patch ?? []).map(({ path }) => path) : answer);

  it("injects the pod of its app", async () => {
    apps.replace([app("shop"), app("foo", {}, { selector: { matchLabels: { component: "foo" } } })]);
    expect(patched(await ask())).toContain("/spec/initContainers");
  });

  it("does not change a pod that the app does not select (any more)", async () => {
    apps.replace([app("shop")]);
    expect(patched(await ask(pod({ component: "else" })))).toEqual([]);
    expect(patched(await ask(pod({})))).toEqual([]);
  });

  it("does not change the pods of an app that is being deleted, and warns", async () => {
    apps.replace([app("shop", { deletionTimestamp: "2026-01-01T00:00:00Z" })]);
    expect(await ask()).toEqual({ allowed: true, warnings: [expect.stringContaining("shop is being deleted")] });
  });

  it("refuses the pods of an app in deletion whose other subsets still own namespaces", async () => {
    const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["ctrlmesh.kruise.io/routes"] };
    apps.replace([app("shop", metadata)]);
    expect(await ask()).toMatchObject({ allowed: false, reason: "Forbidden", message: expect.stringContaining("being deleted") });
  });

  it.each<[string, () => VirtualApp]>([
    ["is being deleted", () => app("shop", { deletionTimestamp: "2026-01-01T00:00:00Z" })],
    ["selects other pods", () => app("shop", {}, { selector: { matchLabels: { component: "old" } } })],
  ])("lets no pod through because a store that is behind shows an app that %s, and was made anew", async (_, old) => {
    apps.replace([old()]);
    newest = { app: app("shop", { uid: "new" }) };
    expect(patched(await ask())).toContain("/spec/initContainers");
    newest = { app: undefined };
    expect(await ask()).toMatchObject({ allowed: false, reason: "NotFound" });
  });

  it("refuses a pod that two apps select, and names both; an app that is being deleted does not count", async () => {
    apps.replace([app("shop"), app("second")]);
    expect(await ask()).toMatchObject({
      allowed: false,
      reason: "Forbidden",
      message: expect.stringMatching(/VirtualApp second and VirtualApp shop both select it/),
    });
    apps.upsert(app("second", { resourceVersion: "2", deletionTimestamp: "2026-01-01T00:00:00Z" }));
    expect(patched(await ask())).toContain("/spec/initContainers");
  });

  it("refuses a pod that two apps of the same name and different kinds select", async () => {
    apps.replace([app("shop")]);
    const own = appOf(app("shop"));
    listed = () => [own, { ...own, ref: { ...own.ref, kind: "ShardingConfig" } }];
    expect(await ask()).toMatchObject({
      allowed: false,
      message: expect.stringContaining("ShardingConfig shop and VirtualApp shop both select it"),
    });
  });

  it("refuses a pod that cannot be injected, with a message", async () => {
    apps.replace([app("shop")]);
    expect(await ask(pod(undefined, { hostNetwork: true }))).toMatchObject({
      allowed: false,
      reason: "Forbidden",
      message: expect.stringContaining("hostNetwork"),
    });
  });

  it("refuses the pods of an invalid app, with its problems", async () => {
    apps.replace([app("shop", {}, { subsets: [{ name: "v1", labels: { a: "b" }, routeRules: ["nothing"] }] })]);
    expect(await ask()).toMatchObject({ allowed: false, message: expect.stringContaining('"nothing": no such subRule') });
  });

  it("refuses the pods of an app that does not exist", async () => {
    apps.replace([]);
    expect(await ask()).toMatchObject({ allowed: false, reason: "NotFound", message: expect.stringContaining("ops/shop") });
  });

  it("throws before it knows the apps and the cluster, so that the failurePolicy decides", async () => {
    await expect(ask()).rejects.toMatchObject({ status: { code: 503, details: { retryAfterSeconds: 1 } } });
    apps.replace([app("shop")]);
    settings = undefined;
    await expect(ask()).rejects.toMatchObject({ status: { code: 503 } });
  });

  it.each<[string, Partial<AdmissionRequest>]>([
    ["an update", { operation: "UPDATE" }],
    ["another resource", { resource: { group: "", version: "v1", resource: "secrets" } }],
    ["a subresource", { subResource: "status" }],
    ["another namespace", { namespace: "team-a" }],
    ["no object", { object: null }],
  ])("refuses to be asked about %s", async (_, more) => {
    apps.replace([app("shop")]);
    expect(await ask(pod(), more)).toMatchObject({ allowed: false, reason: "BadRequest" });
  });

  it("refuses in the validating webhook a pod that is not injected, for example after a later webhook added labels", async () => {
    apps.replace([app("shop")]);
    const first = await ask();
    const lookAt = (object: object) => {
      const none = async () => undefined;
      const inject = createInjectWebhook({ apps: appsIn(apps), read: none, keepRevision: none, settings: () => settings });
      const resource = { group: "", version: "v1", resource: "pods" };
      const request: AdmissionRequest = { uid: "u", resource, operation: "CREATE", namespace: "ops", object };
      return createAdmitWebhook(inject)({ namespace: "ops", name: "shop" })(request, CALLER);
    };
    expect(await lookAt(pod())).toMatchObject({
      allowed: false,
      reason: "Forbidden",
      message: expect.stringContaining("/spec/initContainers"),
    });
    const object = structuredClone(pod()) as Record<string, Record<string, unknown>>;
    for (const { path, value } of first.allowed ? (first.patch ?? []) : []) {
      const [, part = "", key = ""] = path.split("/");
      Object.assign(object[part] ?? {}, { [key]: value });
    }
    expect(await lookAt(object)).toEqual({ allowed: true });
  });

  it("changes nothing in a second call, so that reinvocation is safe", async () => {
    apps.replace([app("shop")]);
    const first = await ask();
    if (!first.allowed) throw new Error(first.message);
    const object = structuredClone(pod()) as Record<string, Record<string, unknown>>;
    for (const { path, value } of first.patch ?? []) {
      const [, part = "", key = ""] = path.split("/");
      Object.assign(object[part] ?? {}, { [key]: value });
    }
    expect(patched(await ask(object as unknown as KubeObject))).toEqual([]);
  });
});
