// What KusionStack's mesh leaves in a cluster: its manager (without a pod), a webhook configuration, and a root with its children, held by
// its finalizer. The names are from its repository.
import { readFileSync } from "node:fs";
import { parse } from "yaml";

const KEY = "ctrlmesh.kusionstack.io";
const NAMESPACE = "operator-demo";
const held = { namespace: NAMESPACE, finalizers: [`finalizer.${KEY}/protected`] };
const root = parse(readFileSync(new URL("../../../examples/sharding/root.yaml", import.meta.url), "utf8")) as {
  metadata: { name: string };
  spec: { controller: object; root: { resourceSelector: object[] } };
};

export const LEFT_BY_KUSION_STACK: readonly object[] = [
  ...["ctrlmesh", NAMESPACE].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { [`${KEY}/control`]: "true" } },
  })),
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "ctrlmesh", namespace: "ctrlmesh" },
    spec: {
      replicas: 0,
      selector: { matchLabels: { "control-plane": "ctrlmesh" } },
      template: {
        metadata: { labels: { "control-plane": "ctrlmesh" } },
        spec: { containers: [{ name: "manager", image: "kusionstack/ctrlmesh-manager" }] },
      },
    },
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "ctrlmesh-mutating" },
  },
  { ...root, metadata: { ...held, name: root.metadata.name } },
  ...["demo-0-canary", "demo-1-normal"].map((name, ordinal) => ({
    ...root,
    metadata: { ...held, name, labels: { [`${KEY}/auto-sharding-root`]: root.metadata.name } },
    spec: {
      controller: root.spec.controller,
      selector: { matchLabels: { "statefulset.kubernetes.io/pod-name": `operator-demo-${ordinal}` } },
      limits: root.spec.root.resourceSelector,
    },
  })),
];
