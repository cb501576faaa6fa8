// `ctrlmesh version`: the versions of this program, of the manager's replicas and of the sidecars, by image.
import { INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { MANAGER_STATE_NAME, type ManagerStateStatus } from "../../api/manager-state.ts";
import { MANAGER_STATES } from "../../api/resources.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { VERSION } from "../../base/version.ts";
import { PODS } from "../../kube/client/resources.ts";
import { imageOf } from "../apps/pod-image.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, failure } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { columns, counted } from "../frame/output.ts";
import { orNothing } from "../frame/read-answer.ts";

const MANAGER_CONTAINER = "manager";

export const VERSIONS: Command = {
  name: "version",
  args: "",
  maxArgs: 0,
  summary: "the versions of this program, the manager and the sidecars",
  flags: { client: { type: "boolean", help: "only this program, without the cluster" } },
  async run({ flags, output, cluster }: Call) {
    if (flags.isSet("client")) {
      output.data("Version", { client: VERSION }, [`ctrlmesh ${VERSION}`]);
      return EXIT.ok;
    }
    const connected = await cluster();
    const status = await managerStatus(connected);
    const namespace = status.namespace ?? "";
    const replicas = await Promise.all(
      (status.endpoints ?? []).map(async ({ name, leader }) => {
        const image = await connected.get(PODS, { namespace, name }).then(
          (pod) => imageOf(pod, MANAGER_CONTAINER) ?? `it has no container ${MANAGER_CONTAINER}`,
          (error: unknown) => (isMeshError(error, "NOT_FOUND") ? "the pod is gone" : `not seen: ${errorMessage(error)}`),
        );
        return { name, leader, image };
      }),
    );
    const pods = await connected.list(PODS, undefined, INJECTED_LABEL);
    const byImage = Map.groupBy(pods, (pod) => imageOf(pod, PROXY_CONTAINER) ?? "no sidecar");
    const sidecars = [...byImage].map(([image, of]) => ({ image, pods: of.length })).sort((a, b) => b.pods - a.pods);
    const rows = [
      ["ctrlmesh", VERSION],
      ...replicas.map(({ name, leader, image }) => [`${leader ? "leader" : "replica"} ${namespace}/${name}`, image]),
      ...sidecars.map(({ image, pods: count }) => [counted(count, "sidecar"), image]),
    ];
    output.data("Version", { client: VERSION, replicas, sidecars }, columns(rows));
    if (sidecars.length > 1) output.hint("the sidecars differ: a pod gets the present sidecar when it is restarted");
    return EXIT.ok;
  },
};

async function managerStatus(cluster: Cluster): Promise<ManagerStateStatus> {
  const state = await orNothing(cluster.get(MANAGER_STATES, { name: MANAGER_STATE_NAME }));
  if (state?.status !== undefined) return state.status;
  throw failure("no manager has reported to this cluster: there is no ManagerState ctrlmesh-manager with a status");
}
