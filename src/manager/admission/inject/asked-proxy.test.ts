import { describe, expect, it } from "vitest";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { sampleShardingConfig } from "../../../../test/support/sharding-config.ts";
import { appOf } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { App } from "../../apps/app.ts";
import { createShardingSource } from "../../sharding/sharding-source.ts";
import { createVirtualAppSource } from "../../virtual-app/virtual-app-source.ts";
import type { AdmissionRequest } from "../server/admission-review.ts";
import { createAskedProxyWebhook } from "./asked-proxy.ts";

const ENABLE = "ctrlmesh.kusionstack.io/enable-proxy";
const INJECT = "ctrlmesh.kusionstack.io/inject-proxy";
const resource = { group: "", version: "v1", resource: "pods" };
const pod = (labels: object, initContainers: object[] = []) => ({
  metadata: { generateName: "shop-", labels },
  spec: { initContainers, containers: [{ name: "operator" }] },
});
const virtualApp = (name: string, metadata: object = {}, spec: Readonly<Record<string, unknown>> = {}) =>
  appOf({ ...sampleVirtualApp(spec), metadata: { namespace: "ops", name, ...metadata } });
const familyOf = (object: object) => createShardingSource().appsOf([object as ShardingConfig])[0] as App;

const ask = (object: object, apps: App[] = [], more: Partial<AdmissionRequest> = {}, hasSynced = true) => {
  const list = (namespace?: string) => apps.filter(({ ref }) => namespace === undefined || ref.namespace === namespace);
  const request = { uid: "u", resource, operation: "CREATE", namespace: "ops", object, ...more } as const;
  return createAskedProxyWebhook({ apps: { list, hasSynced }, sources: [createVirtualAppSource(), createShardingSource()] })(
    request,
    CALLER,
  );
};
const messageOf = async (...args: Parameters<typeof ask>) => {
  const answer = await ask(...args);
  return answer.allowed ? "allowed" : `${answer.reason}: ${answer.message}`;
};

describe("a pod that asks for the proxy by a label", () => {
  it("is refused without a proxy, if no app selects it", async () => {
    expect(await messageOf(pod({ [ENABLE]: "true" }))).toBe(
      `Forbidden: the pod asks for the proxy (label ${ENABLE}), but no VirtualApp or ShardingConfig of namespace ops selects it. Without the proxy it would write beside the operator's other pods. Correct the selector, or remove the label`,
    );
    expect(await messageOf(pod({ [INJECT]: "true" }))).toContain(`(label ${INJECT})`);
    expect(await messageOf(pod({ [INJECT]: "true", [ENABLE]: "true" }))).toContain(`(labels ${ENABLE} and ${INJECT})`);
  });

  it("learns which apps its namespace has", async () => {
    const others = ["a", "b", "c", "d"].map((name) => virtualApp(name));
    expect(await messageOf(pod({ [ENABLE]: "true" }), [...others, familyOf(sampleShardingConfig())])).toContain(
      "of namespace ops selects it (there are VirtualApp a, VirtualApp b, VirtualApp c and 2 more). Without",
    );
  });

  it("is allowed with a proxy, whose form the app's own entry checks", async () => {
    expect(await ask(pod({ [ENABLE]: "true" }, [{ name: "ctrlmesh-proxy" }]))).toEqual({ allowed: true });
  });

  it("is refused while the entry of the app that selects it is not in use yet, and may be created again soon", async () => {
    const labels = { component: "shop", [ENABLE]: "true" };
    expect(await messageOf(pod(labels), [virtualApp("shop")])).toBe(
      `Forbidden: the pod asks for the proxy (label ${ENABLE}) and has none: the API server does not call the mesh yet for the pods of VirtualApp shop, which selects it. Try again when its condition InjectionReady is True`,
    );
    const family = familyOf(sampleShardingConfig());
    expect(await messageOf(pod({ shard: "east", [ENABLE]: "true" }), [family])).toContain("the pods of ShardingConfig shop-lock");
  });

  it("is refused if the app that selects it is refused, switched off or deleted, with the reason", async () => {
    const labels = { component: "shop", [ENABLE]: "true" };
    const bad = virtualApp("shop", {}, { subsets: [{ name: "v1", labels: { a: "b" }, routeRules: ["nothing"] }] });
    expect(await messageOf(pod(labels), [bad])).toMatch(/has none: VirtualApp shop, which selects it, is not valid: .*"nothing"/);
    const deleted = virtualApp("shop", { deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(await messageOf(pod(labels), [deleted])).toContain("has none: VirtualApp shop, which selects it, is being deleted");
  });

  it("gets no answer from a replica that has not listed the apps, unless it has the proxy", async () => {
    expect(() => ask(pod({ [ENABLE]: "true" }), [], {}, false)).toThrow(/has not listed the apps yet/);
    const injected = pod({ [ENABLE]: "true" }, [{ name: "ctrlmesh-proxy" }]);
    expect(await ask(injected, [], {}, false)).toEqual({ allowed: true });
  });

  it.each([{}, { [ENABLE]: "false" }, { [INJECT]: "yes" }])("does not ask with the labels %j", async (labels) => {
    expect(await ask(pod(labels))).toEqual({ allowed: true });
  });

  it("is refused for any other question", async () => {
    const object = pod({ [ENABLE]: "true" });
    for (const more of [{ operation: "UPDATE" }, { subResource: "status" }, { object: null }] as const) {
      expect(await messageOf(object, [], more)).toMatch(/^BadRequest: /);
    }
  });
});
