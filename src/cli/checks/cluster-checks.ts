// Whether each other cluster that an app divides has one writer.
import { meshClusterKind } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { brokenConditions, clusterState, listMeshClusters } from "../apps/cluster-states.ts";
import { type Check, foundError, foundWarning, unreadFindings } from "./check.ts";

const DOCS = "reference/status.md#meshcluster";
/** A cluster that moves for longer waits for a pod. */
const LONG_MOVE_MS = 10 * 60_000;
/** With the others, the cluster has one writer nevertheless. */
const SAYS_WHO_WRITES: ReadonlySet<string> = new Set(["Identified", "NamespacesWatched", "Enforced"]);
/** True for a while of each cluster. */
const PASSING_REASONS: ReadonlySet<string> = new Set(["Moving", "NotListedYet"]);

export const CLUSTERS: Check = {
  name: "clusters",
  holds: "every MeshCluster that an app divides has one writer",
  async run({ cluster, namespace, nowMs }) {
    return (await listMeshClusters(cluster, namespace)).map(clusterState).flatMap((state) => {
      const { namespace: of, name, unread } = state;
      const about = {
        object: `${meshClusterKind.kind} ${of}/${name}`,
        next: `kubectl describe ${MESH_CLUSTERS.resource}.${MESH_CLUSTERS.group} ${name} -n ${of}`,
      };
      const bad = brokenConditions(state);
      return [
        ...unreadFindings(unread, DOCS, about),
        ...bad
          .filter(
            ({ reason, lastTransitionTime }) =>
              !PASSING_REASONS.has(reason) || nowMs - Date.parse(lastTransitionTime) > LONG_MOVE_MS,
          )
          .map(({ type, reason, message }) => {
            const found = PASSING_REASONS.has(reason) || !SAYS_WHO_WRITES.has(type) ? foundWarning : foundError;
            return found(`${type} is False (${reason}): ${message}`, DOCS, about);
          }),
      ];
    });
  },
};
