// `ctrlmesh roll`: restarts the workloads of an app, so that its pods get the present sidecar.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { controllerRefOf } from "../../kube/client/owner.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { PODS, REPLICA_SETS, STATEFUL_SETS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { appOf } from "../apps/app-of.ts";
import { applyChanges } from "../apps/apply-changes.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, failure } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { DRY_RUN } from "../frame/flags.ts";

const DEPLOYMENTS: Resource<KubeObject> = {
  group: "apps",
  version: "v1",
  resource: "deployments",
  kind: "Deployment",
  namespaced: true,
};
const DAEMON_SETS: Resource<KubeObject> = {
  group: "apps",
  version: "v1",
  resource: "daemonsets",
  kind: "DaemonSet",
  namespaced: true,
};
const WORKLOADS = [DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS] as readonly Resource<KubeObject>[];
/** What `kubectl rollout restart` sets. */
const RESTARTED_AT = "kubectl.kubernetes.io/restartedAt";

interface Workload {
  readonly resource: Resource<KubeObject>;
  readonly name: string;
}

export const ROLL: Command = {
  name: "roll",
  args: "APP",
  maxArgs: 1,
  summary: "restarts the workloads of an app, so that its pods get the present sidecar",
  flags: DRY_RUN,
  async run(call: Call) {
    const { cluster, app } = await appOf(call);
    const { name, namespace } = app;
    const pods = await cluster.list(PODS, namespace, `${INJECTED_LABEL}=${name}`);
    const { workloads, left } = await workloadsOf(cluster, namespace, pods);
    if (workloads.length === 0) throw failure(`no pod of ${name} belongs to a Deployment, StatefulSet or DaemonSet`);
    const annotations = { [RESTARTED_AT]: new Date(call.clock.now()).toISOString() };
    const patch = { spec: { template: { metadata: { annotations } } } };
    const changes = workloads.map(({ resource, name: workload }) => {
      const kubectl = ["rollout", "restart", `${resource.resource}/${workload}`, "-n", namespace];
      return { resource, ref: { namespace, name: workload }, patch, done: "restarted", kubectl };
    });
    await applyChanges(call, cluster, changes);
    if (left.length > 0) call.output.hint(`not restarted, since nothing replaces them or another kind does: ${left.join(", ")}`);
    return EXIT.ok;
  },
};

async function workloadsOf(cluster: Cluster, namespace: string, pods: readonly KubeObject[]) {
  const owners = new Map<string, { readonly kind: string; readonly name: string; readonly pods: string[] }>();
  const left: string[] = [];
  for (const pod of pods) {
    const ref = controllerRefOf(pod);
    const { name: podName = "" } = pod.metadata;
    if (ref === undefined) left.push(podName);
    else
      owners.set(`${ref.kind}/${ref.name}`, { ...ref, pods: [...(owners.get(`${ref.kind}/${ref.name}`)?.pods ?? []), podName] });
  }
  const workloads = new Map<string, Workload>();
  for (const owner of owners.values()) {
    const of =
      owner.kind === "ReplicaSet" ? controllerRefOf(await cluster.get(REPLICA_SETS, { namespace, name: owner.name })) : owner;
    const resource = WORKLOADS.find(({ kind }) => kind === of?.kind);
    if (of === undefined || resource === undefined) left.push(...owner.pods);
    else workloads.set(`${of.kind}/${of.name}`, { resource, name: of.name });
  }
  return { workloads: [...workloads.values()], left };
}
