// The MeshClusters as they are after an edit, and what is wrong with the edited ones. Pure. Invariant: an edit that the API server
// would refuse changes nothing.
import { type MeshCluster, validateMeshCluster } from "../../api/mesh-cluster.ts";
import { formatProblem } from "../../api/problems.ts";
import { acceptClusters } from "../../manager/apps/accept-clusters.ts";
import { applied, isSameObject } from "./stored-object.ts";

export interface ClusterEdits {
  /** As the files have them, with their namespaces. */
  readonly clusters: readonly MeshCluster[];
  /** As they are stored. */
  readonly deletedClusters: readonly MeshCluster[];
}

export interface PlannedCluster {
  readonly namespace: string;
  readonly name: string;
  /** Why the API server would refuse it. */
  readonly problems: readonly string[];
  /** Why the manager would not accept it. */
  readonly notes: readonly string[];
}

interface EditedClusters {
  readonly after: readonly MeshCluster[];
  readonly edited: readonly PlannedCluster[];
}

/** A new object is younger than all others, and they go before it. */
const YOUNGEST = "9999-12-31T23:59:59Z";

export function editedClusters(
  stored: readonly MeshCluster[],
  { clusters: files, deletedClusters }: ClusterEdits,
): EditedClusters {
  let after = stored.filter((object) => !deletedClusters.includes(object));
  const problemsOf = files.map((file) => {
    const old = after.find((each) => isSameObject(each, file));
    const next = editedCluster(old, file);
    const checked = validateMeshCluster(next);
    if (checked.ok) after = [...after.filter((each) => each !== old), next];
    return checked.ok ? [] : checked.problems.map(formatProblem);
  });
  const edited = files.map(({ metadata: { namespace = "", name = "" } }, at): PlannedCluster => {
    const problems = problemsOf[at] ?? [];
    const refused = acceptedIn(after, namespace).refused.get(name);
    return { namespace, name, problems, notes: problems.length > 0 || refused === undefined ? [] : [refused.message] };
  });
  return { after, edited };
}

export function acceptedIn(clusters: readonly MeshCluster[], namespace: string) {
  return acceptClusters(clusters.filter(({ metadata }) => metadata.namespace === namespace));
}

function editedCluster(old: MeshCluster | undefined, file: MeshCluster): MeshCluster {
  const creationTimestamp = old?.metadata.creationTimestamp ?? file.metadata.creationTimestamp ?? YOUNGEST;
  const labels = applied(old?.metadata.labels, file.metadata.labels);
  const annotations = applied(old?.metadata.annotations, file.metadata.annotations);
  return { ...file, metadata: { ...old?.metadata, ...file.metadata, labels, annotations, creationTimestamp } };
}
