import { describe, expect, it } from "vitest";
import { sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { podClaims } from "../../mesh/handover/claims.ts";
import { appPods } from "../facts/app-pods.ts";
import { interceptedVerdict } from "../status/intercepted.ts";
import { createShardingSource } from "./sharding-source.ts";

const POD_NAME = "statefulset.kubernetes.io/pod-name";
const INJECTED = { "ctrlmesh.kruise.io/virtual-app-injected": "shop" };
const PLACED = { placement: { start: 0, shards: 2, active: [1, 2] } };

/** Pods of the StatefulSet of a root with a canary pod and two shards of two pods; the labels are added to each pod's own. */
const factsOf = (selector: object, labelsOf: (ordinal: number) => object) => {
  const root = sampleShardingRoot({}, { selector });
  const [app] = createShardingSource().appsOf([
    { ...root, metadata: { namespace: "ops", name: "shop" }, status: PLACED } as unknown as ShardingConfig,
  ]);
  if (app === undefined) throw new Error("no app");
  const pods = [0, 1, 2, 3, 4].map((ordinal): Pod => {
    const name = `shop-operator-${ordinal}`;
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "ops", name, uid: `uid-${ordinal}`, labels: { [POD_NAME]: name, ...labelsOf(ordinal) } },
      spec: { nodeName: "node", containers: [{ name: "operator" }] },
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [{ name: "operator", restartCount: 0, state: { running: {} } }],
      },
    } as unknown as Pod;
  });
  return { app, pods: appPods(app.pods, pods) };
};

describe("the pods of a root that its selector does not match", () => {
  const ONE_POD = { matchExpressions: [{ key: POD_NAME, operator: "In", values: ["shop-operator-0"] }] };
  const LABEL = { matchLabels: { app: "shop" } };

  it.each([
    ["names one pod", ONE_POD, () => ({})],
    ["asks for a label that they lost", LABEL, (ordinal: number) => (ordinal < 2 ? { app: "shop" } : {})],
  ])("claim everything while they have no proxy, and the status names them: a selector that %s", (_, selector, labelsOf) => {
    const { app, pods } = factsOf(selector, (ordinal) => ({ ...labelsOf(ordinal), ...(ordinal < 2 ? INJECTED : {}) }));
    expect(pods.map(({ subset, proxy }) => `${subset} ${proxy}`)).toEqual([
      "shop-0-canary own",
      "shop-1-normal own",
      "shop-1-normal none",
      "shop-2-normal none",
      "shop-2-normal none",
    ]);
    const claims = podClaims(app.ref, pods, () => undefined).filter(({ podName }) => podName > "shop-operator-1");
    expect(claims).toEqual(
      ["2", "3", "4"].map((ordinal) => ({ kind: "everything", podName: `shop-operator-${ordinal}`, subset: "" })),
    );
    expect(interceptedVerdict({ pods })).toMatchObject({
      status: "False",
      reason: "PodsWithoutProxy",
      message:
        "3 running pods, pod shop-operator-2 first, carry no proxy and may write everything: restart to have the proxy injected",
    });
  });

  it("are named by the status when they have the proxy, because the selector has no effect on them", () => {
    const { pods } = factsOf(ONE_POD, () => INJECTED);
    expect(interceptedVerdict({ pods })).toEqual({
      status: "True",
      reason: "AllInjected",
      message:
        "5 pods with the proxy, none without; spec.selector does not match pod shop-operator-1 and 3 more: the selector of a root leaves out no pod of the StatefulSet",
    });
    expect(interceptedVerdict(factsOf(LABEL, () => ({ ...INJECTED, app: "shop" }))).message).toBe(
      "5 pods with the proxy, none without",
    );
  });
});
