// Whether each other cluster that an app divides has one writer.
import { type Condition, conditionsSchema } from "../../api/conditions.ts";
import { meshClusterKind } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { readFields } from "../apps/read-status.ts";
import { orNothing } from "../frame/read-answer.ts";
import { type Check, foundError, foundWarning, unreadFindings } from "./check.ts";

const DOCS = "tasks/divide-clusters.md#while-a-cluster-moves";
/** A cluster that moves for longer waits for a pod. */
const LONG_MOVE_MS = 10 * 60_000;

export const CLUSTERS: Check = {
  name: "clusters",
  holds: "every MeshCluster that an app divides has one writer",
  async run({ cluster, namespace, nowMs }) {
    const all = (await orNothing(cluster.list(MESH_CLUSTERS, namespace))) ?? [];
    return all.flatMap(({ metadata: { namespace: of = "", name = "" }, status }) => {
      const { status: read = {}, unread } = readFields({ conditions: conditionsSchema }, status);
      const { conditions = [] } = read as { readonly conditions?: readonly Condition[] };
      const about = {
        object: `${meshClusterKind.kind} ${of}/${name}`,
        next: `kubectl describe ${MESH_CLUSTERS.resource}.${MESH_CLUSTERS.group} ${name} -n ${of}`,
      };
      const bad = conditions.filter(({ type, status: is }) => type !== "Ready" && is === "False");
      return [
        ...unreadFindings(unread, DOCS, about),
        ...bad
          .filter(
            ({ reason, lastTransitionTime }) => reason !== "Moving" || nowMs - Date.parse(lastTransitionTime) > LONG_MOVE_MS,
          )
          .map(({ type, reason, message }) => {
            const found = reason === "Moving" ? foundWarning : foundError;
            return found(`${type} is False (${reason}): ${message}`, DOCS, about);
          }),
      ];
    });
  },
};
