import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { sampleVirtualApp } from "../../test/support/virtual-app.ts";
import { INJECTED_LABEL } from "../api/injected-pod.ts";
import { EXIT } from "./frame/exit.ts";

const owned = (
  kind: string,
  name: string,
  of: string,
  owner?: readonly [kind: string, name: string],
  more: object = {},
): FakeObject =>
  ({
    apiVersion: kind === "Pod" ? "v1" : "apps/v1",
    kind,
    metadata: {
      namespace: "ops",
      name,
      labels: { [INJECTED_LABEL]: of },
      ...(owner && {
        ownerReferences: [{ apiVersion: "apps/v1", kind: owner[0], name: owner[1], uid: owner[1], controller: true }],
      }),
    },
    ...more,
  }) as unknown as FakeObject;

describe("roll", () => {
  it("restarts each workload of the app once, and names the pods that nothing replaces", async () => {
    const cli = startCli([
      movingApp(),
      owned("ReplicaSet", "shop-1a", "", ["Deployment", "shop"]),
      owned("Pod", "shop-1a-x", "shop", ["ReplicaSet", "shop-1a"]),
      owned("Pod", "shop-1a-y", "shop", ["ReplicaSet", "shop-1a"]),
      owned("Pod", "set-0", "shop", ["StatefulSet", "set"]),
      owned("Pod", "bare", "shop"),
      owned("Pod", "other-0", "other", ["StatefulSet", "other"]),
    ]);
    const { code, stderr } = await cli.run("roll", "shop");
    expect(code).toBe(EXIT.ok);
    expect(cli.patches.map(({ path }) => path)).toEqual([
      "/apis/apps/v1/namespaces/ops/deployments/shop",
      "/apis/apps/v1/namespaces/ops/statefulsets/set",
    ]);
    const annotations = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00.000Z" };
    expect(cli.patches[0]?.patch).toEqual({ spec: { template: { metadata: { annotations } } } });
    expect(stderr).toContain("with kubectl: kubectl rollout restart deployments/shop -n ops --field-manager=ctrlmesh\n");
    expect(stderr).toContain("not restarted, since nothing replaces them or another kind does: bare\n");
  });

  it("shows no command in a dry run that would restart, and gives programs one document", async () => {
    const cli = startCli([
      movingApp(),
      owned("Pod", "a-0", "shop", ["StatefulSet", "a"]),
      owned("Pod", "b-0", "shop", ["StatefulSet", "b"]),
    ]);
    const { stdout, stderr } = await cli.run("roll", "shop", "--dry-run", "-o", "json");
    expect(stderr).toBe("");
    const { kind, items } = JSON.parse(stdout);
    expect([kind, items.map(({ name }: { name: string }) => name)]).toEqual(["ChangeList", ["a", "b"]]);
    expect(cli.patches.map(({ dryRun }) => dryRun)).toEqual([true, true]);
  });

  it("fails if there is nothing to restart", async () => {
    expect((await startCli([movingApp(), owned("Pod", "bare", "shop")]).run("roll", "shop")).code).toBe(EXIT.failed);
  });
});

describe("explain inject", () => {
  const app = (more: object = {}, metadata: object = {}) =>
    ({
      ...sampleVirtualApp(),
      metadata: { namespace: "ops", name: "shop", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
      ...more,
    }) as unknown as FakeObject;
  const pod = (labels: object, { at = "2026-01-02T00:00:00Z", sidecar = false } = {}) =>
    ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "ops", name: "shop-0", labels, creationTimestamp: at },
      spec: { containers: [{ name: sidecar ? "ctrlmesh-proxy" : "operator" }] },
    }) as unknown as FakeObject;
  const SELECTED = { component: "shop" };
  const notReady = {
    status: { conditions: [{ type: "InjectionReady", status: "False", reason: "WebhookPending", message: "text" }] },
  };

  it.each<[what: string, objects: FakeObject[], code: number, text: string]>([
    [
      "an injected pod",
      [app(), pod({ ...SELECTED, [INJECTED_LABEL]: "shop" }, { sidecar: true })],
      EXIT.ok,
      "has sidecar: VirtualApp ops/shop selects it",
    ],
    [
      "a pod that is older than the app",
      [app(), pod(SELECTED, { at: "2025-12-31T00:00:00Z" })],
      EXIT.findings,
      "it is older than VirtualApp ops/shop",
    ],
    [
      "a pod before the webhook was ready",
      [app(notReady), pod(SELECTED)],
      EXIT.findings,
      "injection is not ready (WebhookPending): text",
    ],
    ["a pod that the webhook has missed", [app(), pod(SELECTED)], EXIT.findings, "the webhook has not seen it"],
    ["a pod of no app", [app(), pod({ component: "other" })], EXIT.ok, "its labels match none of: VirtualApp ops/shop"],
    ["a pod in a namespace without apps", [pod(SELECTED)], EXIT.ok, "there is no app in its namespace"],
    [
      "a pod of an app that has gone",
      [pod({ [INJECTED_LABEL]: "gone" }, { sidecar: true })],
      EXIT.findings,
      "made for gone, and no app selects it now",
    ],
    [
      "a pod of two apps",
      [app(), app({}, { name: "twin" }), pod(SELECTED)],
      EXIT.findings,
      "a new pod that two apps select is refused",
    ],
  ])("explains %s", async (_what, objects, code, text) => {
    expect(await startCli(objects).run("explain", "inject", "pod/shop-0")).toMatchObject({
      code,
      stdout: expect.stringContaining(text),
    });
  });
});
