// The demo's operator as a user deploys it: one Deployment for each subset, or one StatefulSet for all shards. Its pods have the label and the annotations of injected pods.
import { stringify } from "yaml";
import { EGRESS_LISTEN_ENV } from "../../src/api/injected-pod.ts";

export interface InjectedWorkloadOptions {
  /** Default "Deployment". */
  readonly kind?: "Deployment" | "StatefulSet";
  readonly name: string;
  readonly replicas: number;
  /** The pods of a StatefulSet start one after the other, as by Kubernetes' default. The default here is at once. */
  readonly startsInOrder?: boolean;
  /** Ordinal of a StatefulSet's first pod. */
  readonly start?: number;
  /** A StatefulSet that is rolled out by shards: the value of its label `rolling`. */
  readonly rolling?: string;
  /** Changes the template. */
  readonly release?: string;
  /** The value of the label `version`, which assigns pods to subsets. */
  readonly version: string;
  /** Default "foo-system". */
  readonly namespace?: string;
  /** The VirtualApp; default "foo-operator". */
  readonly app?: string;
  /** Default true. */
  readonly isInjected?: boolean;
  /** The sidecar takes requests to other servers, also to private addresses; default false. */
  readonly hasEgress?: boolean;
}

/** YAML of the workload. */
export function injectedWorkload(options: InjectedWorkloadOptions): string {
  const {
    kind = "Deployment",
    name,
    replicas,
    version,
    startsInOrder = false,
    start,
    rolling,
    release,
    namespace = "foo-system",
    app = "foo-operator",
    isInjected = true,
    hasEgress = false,
  } = options;
  const labels = { component: app, version };
  const injected = isInjected ? { "ctrlmesh.kruise.io/virtual-app-injected": app } : {};
  const env = hasEgress ? [{ name: EGRESS_LISTEN_ENV, value: "127.0.0.1:15002" }] : [];
  const sidecar = { name: "ctrlmesh-proxy", image: "example.invalid/ctrlmesh-proxy", restartPolicy: "Always", env };
  return stringify({
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace, ...(rolling === undefined ? {} : { labels: { "ctrlmesh.kusionstack.io/rolling": rolling } }) },
    spec: {
      replicas,
      ...(kind === "StatefulSet" ? { serviceName: name, podManagementPolicy: startsInOrder ? "OrderedReady" : "Parallel" } : {}),
      ...(rolling === undefined ? {} : { updateStrategy: { type: "OnDelete" } }),
      ...(start === undefined ? {} : { ordinals: { start } }),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels: { ...labels, ...injected }, ...(release === undefined ? {} : { annotations: { release } }) },
        spec: {
          serviceAccountName: "foo-operator",
          terminationGracePeriodSeconds: 10,
          ...(isInjected ? { initContainers: [sidecar] } : {}),
          containers: [{ name: "operator", image: "example.invalid/foo-operator" }],
        },
      },
    },
  });
}
