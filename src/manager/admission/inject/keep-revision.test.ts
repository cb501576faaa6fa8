import { beforeEach, describe, expect, it } from "vitest";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import { ROLL_EXPECTED, ROLLING } from "../../../api/sharding-keys.ts";
import { REVISION_LABEL, type StatefulSet } from "../../../kube/client/resources.ts";
import { StatusError } from "../../../kube/status.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { Apps } from "../../apps/app.ts";
import { createShardingSource } from "../../sharding/sharding-source.ts";
import type { AdmissionAnswer, AdmissionRequest } from "../server/admission-review.ts";
import { createInjectWebhook } from "./inject-webhook.ts";
import { createRevisionKeeper } from "./keep-revision.ts";

const NAME = "shop-operator-1";
const OWNERS = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "shop-operator", uid: "set", controller: true }];
const TOKEN = { name: "kube-api-access-x", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };
const MOUNT = { name: TOKEN.name, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
const config = {
  ...sampleShardingRoot(),
  metadata: {
    name: "shop",
    namespace: "ops",
    uid: "root",
  },
  status: { placement: { start: 0, shards: 3, active: [1, 2, 3] } },
} as unknown as ShardingConfig;
const template = (image: string) => ({
  $patch: "replace",
  metadata: { labels: { component: "shop" }, annotations: { release: image } },
  spec: { containers: [{ name: "operator", image }] },
});

/** The second pod, as the StatefulSet's controller makes it from the new revision. */
const podOf = (revision: string, image: string) => ({
  metadata: {
    name: NAME,
    labels: { component: "shop", [REVISION_LABEL]: revision, "statefulset.kubernetes.io/pod-name": NAME },
    annotations: { release: image },
    ownerReferences: OWNERS,
  },
  spec: {
    containers: [{ name: "operator", image, volumeMounts: [MOUNT] }],
    serviceAccountName: "shop",
    hostname: NAME,
    volumes: [TOKEN],
  },
});

describe("a pod of a sharded StatefulSet during a rollout", () => {
  let statefulSet: StatefulSet;
  let annotations: Record<string, string>;
  let revisions: Record<string, string>;
  let failure: Error | undefined;
  let reads: string[];
  let seen: () => KubeObject | undefined;
  let ownersOf: Record<string, typeof OWNERS>;

  beforeEach(() => {
    ownersOf = {};
    seen = () => statefulSet;
    const record = { updateRevision: "new", podRevision: { "shop-operator-0": "new", [NAME]: "old" } };
    annotations = { [ROLL_EXPECTED]: JSON.stringify(record) };
    statefulSet = {
      metadata: { uid: "set", labels: { [ROLLING]: "" } },
      spec: { replicas: 2, updateStrategy: { type: "OnDelete" } },
    };
    revisions = { new: "shop:2", old: "shop:1" };
    failure = undefined;
    reads = [];
  });

  const client = {
    async get({ kind }: { kind: string }, { name }: { name: string }) {
      reads.push(`${kind} ${name}`);
      if (failure !== undefined) throw failure;
      if (kind === "StatefulSet") return statefulSet;
      if (kind === "ShardingConfig") return { ...config, metadata: { ...config.metadata, annotations } };
      const image = revisions[name];
      if (image === undefined) throw new StatusError("NotFound", "gone");
      return { metadata: { name, ownerReferences: ownersOf[name] ?? OWNERS }, data: { spec: { template: template(image) } } };
    },
  };
  const ask = async (object: object): Promise<AdmissionAnswer> => {
    const [app] = createShardingSource().appsOf([config]);
    const apps = { hasSynced: true, get: () => app, list: () => (app === undefined ? [] : [app]), onChange: () => () => {} };
    const settings = { proxyImage: "proxy:1", managerAddress: "m:1", nativeSidecars: true };
    const resource = { group: "", version: "v1", resource: "pods" };
    const request: AdmissionRequest = { uid: "u", resource, operation: "CREATE", namespace: "ops", object };
    return createInjectWebhook({
      apps: apps as unknown as Apps,
      read: async () => app,
      keepRevision: createRevisionKeeper({
        client: client as never,
        statefulSets: { get: () => seen() },
        limit: (_, read) => read(),
      }),
      settings: () => ({ ...settings, kubernetesService: { ips: ["10.0.0.1"], port: 443 } }),
    })({ namespace: "ops", name: "shop" })(request, CALLER);
  };
  /** The values that the patch gives to whole fields; a later one counts. */
  const changes = (answer: AdmissionAnswer) =>
    Object.fromEntries((answer.allowed ? (answer.patch ?? []) : []).map(({ path, value }) => [path, value]));

  it("gets its old revision before its turn, and the proxy", async () => {
    const changed = changes(await ask(podOf("new", "shop:2")));
    expect(changed["/metadata/annotations"]).toMatchObject({ release: "shop:1" });
    expect(changed["/metadata/labels"]).toMatchObject({
      [REVISION_LABEL]: "old",
      "ctrlmesh.kruise.io/virtual-app-injected": "shop",
    });
    expect(changed["/spec/containers"]).toMatchObject([
      { name: "operator", image: "shop:1", volumeMounts: expect.arrayContaining([MOUNT]) },
    ]);
    expect(changed["/spec/initContainers"]).toMatchObject([{ name: "ctrlmesh-proxy" }]);
    expect(Object.keys(changed)).not.toContain("/spec/hostname");
  });
  it("is injected exactly as one that was made from its old revision", async () => {
    const [kept, old] = [changes(await ask(podOf("new", "shop:2"))), changes(await ask(podOf("old", "shop:1")))];
    expect(kept).toMatchObject(old);
    expect(reads).toEqual([
      "StatefulSet shop-operator",
      "ShardingConfig shop",
      "ControllerRevision new",
      "ControllerRevision old",
      "StatefulSet shop-operator",
      "ShardingConfig shop",
    ]);
  });
  it.each<[string, () => void]>([
    ["the StatefulSet has no label", () => (statefulSet = { ...statefulSet, metadata: { ...statefulSet.metadata, labels: {} } })],
    [
      "its controller restarts pods itself",
      () => (statefulSet = { ...statefulSet, spec: { updateStrategy: { type: "RollingUpdate" } } }),
    ],
    ["there is no record", () => (annotations = {})],
    [
      "somebody wrote a record into the StatefulSet",
      () => {
        statefulSet = { ...statefulSet, metadata: { ...statefulSet.metadata, annotations } };
        annotations = {};
      },
    ],
    [
      "it belongs to another StatefulSet",
      () => (statefulSet = { ...statefulSet, metadata: { ...statefulSet.metadata, uid: "other" } }),
    ],
    ["its old revision is gone", () => delete revisions.old],
    ["its label names the revision of another StatefulSet, parts of which the patch would show", () => (ownersOf = { new: [] })],
  ])("keeps the new revision if %s", async (_, change) => {
    change();
    const changed = changes(await ask(podOf("new", "shop:2")));
    expect(changed["/metadata/labels"]).toMatchObject({ [REVISION_LABEL]: "new" });
  });
  it("is read only for a pod of a StatefulSet that rolls out: a flood of invented pods causes no reads", async () => {
    await ask({ ...podOf("new", "shop:2"), metadata: { ...podOf("new", "shop:2").metadata, ownerReferences: [] } });
    const { metadata } = statefulSet;
    seen = () => ({ metadata: { ...metadata, labels: {} } });
    await ask(podOf("new", "shop:2"));
    expect(reads).toEqual([]);
  });
  it("is read of a StatefulSet that the store does not have yet", async () => {
    seen = () => undefined;
    expect(changes(await ask(podOf("new", "shop:2")))["/metadata/labels"]).toMatchObject({ [REVISION_LABEL]: "old" });
  });
  it("is not created while the StatefulSet cannot be read", async () => {
    failure = new StatusError("ServiceUnavailable", "down");
    await expect(ask(podOf("new", "shop:2"))).rejects.toThrow("cannot read the revision that the pod is to have now");
  });
});
