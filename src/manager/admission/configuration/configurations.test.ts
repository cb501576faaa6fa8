import { describe, expect, it } from "vitest";
import { sampleShardingConfig, sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import { appOf } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { App } from "../../apps/app.ts";
import { createShardingSource } from "../../sharding/sharding-source.ts";
import {
  injectionConfiguration,
  injectionWebhookName,
  isInjected,
  validationConfiguration,
  type WebhookTarget,
} from "./configurations.ts";

const TARGET = { namespace: "ctrlmesh-system", serviceName: "ctrlmesh-manager", url: "", timeoutSeconds: 7 };
const app = (namespace: string, name: string, { metadata = {}, spec = {}, ...more }: Record<string, object> = {}) =>
  appOf({ ...sampleVirtualApp({ ...spec }), metadata: { namespace, name, ...metadata }, ...more });
const kinds = [{ resource: VIRTUAL_APPS }];
const entriesOf = (apps: App[], target: WebhookTarget, trustPem: string) => ({ kinds, apps, target, trustPem });
const webhooksOf = (...args: Parameters<typeof entriesOf>) => injectionConfiguration(entriesOf(...args)).webhooks ?? [];
const BAD_SPEC = { subsets: [{ name: "v1", labels: { a: "b" }, routeRules: ["nothing"] }] };

describe("the injection's configuration", () => {
  it("has one entry for each app, for its pods in its namespace and no others", () => {
    const [, ...webhooks] = webhooksOf([app("ops", "shop")], TARGET, "PEM");
    expect(webhooks).toEqual([
      {
        name: "shop.ops.inject.ctrlmesh.kruise.io",
        admissionReviewVersions: ["v1"],
        clientConfig: {
          caBundle: "UEVN",
          service: { namespace: "ctrlmesh-system", name: "ctrlmesh-manager", path: "/inject/ops/shop", port: 443 },
        },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ops" } },
        objectSelector: { matchLabels: { component: "shop" } },
        failurePolicy: "Fail",
        matchPolicy: "Equivalent",
        reinvocationPolicy: "IfNeeded",
        sideEffects: "None",
        timeoutSeconds: 7,
      },
    ]);
  });

  it("has at most 64 entries of one namespace, those of its oldest apps, so that the others have room", () => {
    const many = Array.from({ length: 70 }, (_, index) =>
      app("greedy", `app-${index}`, { metadata: { creationTimestamp: `2026-01-01T00:${99 - index}:00Z` } }),
    );
    const names = webhooksOf([...many, app("ops", "shop")], TARGET, "PEM").map(({ name }) => name);
    expect(names.filter((name) => name.includes(".greedy."))).toHaveLength(64);
    expect(names).toContain("shop.ops.inject.ctrlmesh.kruise.io");
    expect(names).toContain("app-69.greedy.inject.ctrlmesh.kruise.io");
    expect(names).not.toContain("app-5.greedy.inject.ctrlmesh.kruise.io");
  });

  it("leaves out the terms of a selector that would take the room of others: more pods are asked about, and none less", () => {
    const values = Array.from({ length: 128 }, (_, index) => `${index}`.padEnd(63, "x"));
    const matchExpressions = Array.from({ length: 15 }, (_, index) => ({ key: `key-${index}`, operator: "In", values }));
    const short = { key: "short", operator: "Exists" };
    const selector = { matchLabels: { component: "shop" }, matchExpressions: [...matchExpressions, short] };
    const [, webhook] = webhooksOf([app("ops", "shop", { spec: { selector } })], TARGET, "PEM");
    expect(webhook?.objectSelector).toEqual({ matchLabels: { component: "shop" }, matchExpressions: [short] });
    const onlyLong = { matchExpressions };
    expect(webhooksOf([app("ops", "shop", { spec: { selector: onlyLong } })], TARGET, "PEM")[1]?.objectSelector).toEqual({});
  });

  it("is asked about all pods of a root's StatefulSet, whatever the selector of the root is, and about no other StatefulSet's", () => {
    const selector = { matchLabels: { app: "shop" } };
    const root = sampleShardingRoot({ targetStatefulSet: "shop.v1" }, { selector });
    const apps = createShardingSource().appsOf([root as unknown as ShardingConfig]);
    const { webhooks: admissions = [] } = validationConfiguration(entriesOf(apps, TARGET, "PEM"));
    const key = "statefulset.kubernetes.io/pod-name";
    const expression = `object.metadata.?labels[?"${key}"].orValue("").matches("^shop[.]v1-[0-9]+$")`;
    for (const webhook of [webhooksOf(apps, TARGET, "PEM")[1], admissions[1]]) {
      expect(webhook).toMatchObject({
        objectSelector: { matchExpressions: [{ key, operator: "Exists" }] },
        matchConditions: [{ name: "pods-of-the-stateful-set", expression }],
      });
    }
  });

  it("has no condition for a StatefulSet whose name could end the expression: one wrong expression would keep all entries away", () => {
    const root = { ...sampleShardingRoot({ targetStatefulSet: '") || true || ("' }), status: { routeVersion: 1 } };
    const apps = createShardingSource().appsOf([root as unknown as ShardingConfig]);
    const [, webhook] = webhooksOf(apps, TARGET, "PEM");
    expect(webhook?.objectSelector).toMatchObject({ matchExpressions: [{ operator: "Exists" }] });
    expect(webhook).not.toHaveProperty("matchConditions");
  });

  it("does not depend on the order of the apps", () => {
    const apps = [app("b", "x"), app("a", "y"), app("a", "x"), app("a", "x.a")];
    const one = injectionConfiguration(entriesOf(apps, TARGET, "PEM"));
    expect(injectionConfiguration(entriesOf(apps.toReversed(), TARGET, "PEM"))).toEqual(one);
    expect(new Set(one.webhooks?.map(({ name }) => name)).size).toBe(5);
  });

  it("has one entry for two apps of different kinds with the same name, because names must be unique", () => {
    const [one, other] = [app("ops", "shop"), app("ops", "shop")];
    const apps = [one, { ...other, ref: { ...other.ref, kind: "ShardingConfig" } }];
    expect(webhooksOf(apps, TARGET, "PEM").map(({ name }) => name)).toHaveLength(2);
  });

  it("also has an entry for VirtualApps, which the API server calls before its own checks", () => {
    const [early] = webhooksOf([], TARGET, "PEM");
    const [late] = validationConfiguration(entriesOf([], TARGET, "PEM")).webhooks ?? [];
    const { service } = late?.clientConfig ?? {};
    const clientConfig = { caBundle: "UEVN", service: { ...service, path: "/validate/early" } };
    expect(early).toEqual({ ...late, clientConfig, reinvocationPolicy: "Never" });
  });

  it("names the URL instead of the Service for a manager outside of the cluster", () => {
    const [, ...webhooks] = webhooksOf([app("ops", "shop")], { ...TARGET, url: "https://127.0.0.1:9443/" }, "PEM");
    expect(webhooks[0]?.clientConfig).toEqual({ caBundle: "UEVN", url: "https://127.0.0.1:9443/inject/ops/shop" });
  });

  it("omits what the API server does not store, so that it is not written repeatedly", () => {
    const selector = { matchLabels: {}, matchExpressions: [{ key: "a", operator: "Exists", values: [] }] };
    const [, ...webhooks] = webhooksOf([app("ops", "shop", { spec: { selector } })], TARGET, "PEM");
    expect(webhooks[0]?.objectSelector).toEqual({ matchExpressions: [{ key: "a", operator: "Exists" }] });
  });

  it("has legal names for the longest apps and namespaces", () => {
    const name = injectionWebhookName({ namespace: "n".repeat(63), name: "a".repeat(63) });
    expect(name.length).toBeLessThanOrEqual(253);
    expect(name.split(".").length).toBeGreaterThanOrEqual(3);
  });
});

describe("isInjected", () => {
  it("is false for a deleted app, and in the manager's own namespace", () => {
    expect(isInjected(app("ops", "shop"), "ctrlmesh-system")).toBe(true);
    expect(isInjected(app("ops", "shop", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), "ctrlmesh-system")).toBe(
      false,
    );
    expect(isInjected(app("ctrlmesh-system", "shop"), "ctrlmesh-system")).toBe(false);
  });

  it("is true for an app in deletion until its other subsets have released their namespaces", () => {
    const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["ctrlmesh.kruise.io/routes"] };
    expect(isInjected(app("ops", "shop", { metadata }), "m")).toBe(true);
    expect(isInjected(app("m", "shop", { metadata }), "m")).toBe(false);
  });

  it("is false for an invalid app that was never served, and true for an invalid app that was served", () => {
    expect(isInjected(app("ops", "shop", { spec: BAD_SPEC }), "m")).toBe(false);
    expect(isInjected(app("ops", "shop", { spec: BAD_SPEC, status: { routeVersion: 3 } }), "m")).toBe(true);
    const spec = { selector: { matchLabels: { "not a key": "x" } } };
    expect(isInjected(app("ops", "shop", { spec, status: { routeVersion: 3 } }), "m")).toBe(false);
  });

  it("is true for a refused family of which any object was served, also if a new one is its first", () => {
    const config = (name: string, metadata: object) => {
      const object = sampleShardingConfig({ onLoss: "Nothing" });
      return { ...object, metadata: { namespace: "ops", name, ...metadata } } as unknown as ShardingConfig;
    };
    const isFamilyInjected = (...configs: ShardingConfig[]) =>
      createShardingSource()
        .appsOf(configs)
        .map((family) => isInjected(family, "m"));
    expect(isFamilyInjected(config("a", {}), config("b", {}))).toEqual([false]);
    expect(isFamilyInjected(config("a", {}), config("b", { finalizers: ["ctrlmesh.kruise.io/routes"] }))).toEqual([true]);
  });

  it.each([{}, undefined])(
    "is false for a served app without a term in its selector (%s), which would stop every pod",
    (selector) => {
      const bad = app("ops", "shop", { spec: { selector } as object, status: { routeVersion: 3 } });
      expect(isInjected(bad, "m")).toBe(false);
    },
  );
});

describe("the validation's configuration", () => {
  it("has one entry for each app, for its final pods, which fails closed like the injection's entry", () => {
    const [, injection] = webhooksOf([app("ops", "shop")], TARGET, "PEM");
    const [, admission, ...asked] =
      validationConfiguration(entriesOf([app("ops", "shop"), app("m", "x")], { ...TARGET, namespace: "m" }, "PEM")).webhooks ??
      [];
    const { reinvocationPolicy: _, name: __, clientConfig: ___, ...same } = injection ?? {};
    expect(asked).toHaveLength(2);
    expect(admission).toMatchObject({ ...same, name: "shop.ops.admit.ctrlmesh.kruise.io", failurePolicy: "Fail" });
    expect(admission?.clientConfig.service?.path).toBe("/admit/ops/shop");
    expect(admission).not.toHaveProperty("reinvocationPolicy");
  });

  it("has an entry for pods with each label that asks for the proxy, everywhere but in the manager's own namespace", () => {
    const [, ...asked] = validationConfiguration(entriesOf([], TARGET, "PEM")).webhooks ?? [];
    expect(asked.map(({ name, objectSelector }) => [name, objectSelector])).toEqual([
      ["enable-proxy.ctrlmesh.kruise.io", { matchLabels: { "ctrlmesh.kusionstack.io/enable-proxy": "true" } }],
      ["inject-proxy.ctrlmesh.kruise.io", { matchLabels: { "ctrlmesh.kusionstack.io/inject-proxy": "true" } }],
    ]);
    const values = ["ctrlmesh-system"];
    expect(asked[0]).toMatchObject({
      clientConfig: { service: { path: "/asked" } },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"], scope: "Namespaced" }],
      namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "NotIn", values }] },
      failurePolicy: "Fail",
      timeoutSeconds: 7,
    });
  });

  it("ignores failures, because the CRD and the conditions work without it", () => {
    const [webhook] = validationConfiguration(entriesOf([], TARGET, "PEM")).webhooks ?? [];
    expect(webhook).toMatchObject({ failurePolicy: "Ignore", timeoutSeconds: 5, sideEffects: "None" });
    expect(webhook?.rules).toEqual([
      {
        apiGroups: ["ctrlmesh.kruise.io"],
        apiVersions: ["v1alpha1"],
        resources: ["virtualapps"],
        operations: ["CREATE", "UPDATE"],
        scope: "Namespaced",
      },
    ]);
  });
});
