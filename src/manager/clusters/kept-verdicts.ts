// What a status goes on saying while the manager has not heard of all pods, or of the cluster's namespaces: after a failover of the manager,
// and while a pod starts. Pure. Invariant: a verdict is kept only for the same spec and the same owners, and never against a fact.
import { isDeepStrictEqual } from "node:util";
import type { MeshClusterStatus } from "../../api/mesh-cluster.ts";
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import { isUnheard } from "../../mesh/handover/plan-fences.ts";
import type { NamespacesState } from "../cluster-namespaces/namespaces-state.ts";

type Condition = NonNullable<MeshClusterStatus["conditions"]>[number];
type KeptVerdict = Pick<Condition, "status" | "reason" | "message">;

interface PodsOfApp {
  readonly waits: readonly ClusterWait[];
  readonly troubles: readonly unknown[];
}

interface KeptFacts {
  readonly status: MeshClusterStatus | undefined;
  readonly generation: number;
  readonly owners: MeshClusterStatus["owners"];
  readonly apps: readonly PodsOfApp[];
  readonly watched: NamespacesState | undefined;
}

/** The conditions that stay as they are. */
export function keptVerdicts({ status, generation, owners = [], apps, watched }: KeptFacts) {
  const isAboutThis = status?.observedGeneration === generation && isDeepStrictEqual(status.owners ?? [], owners);
  if (!isAboutThis || apps.length === 0) return {};
  const verdictOf = (type: string): KeptVerdict | undefined => {
    const condition = status.conditions?.find((each) => each.type === type);
    if (condition === undefined || condition.status === "Unknown") return undefined;
    return { status: condition.status, reason: condition.reason, message: condition.message };
  };
  const waits = apps.flatMap((each) => each.waits);
  const before = verdictOf("Enforced");
  const isKept = waits.some(isUnheard) && (before?.status === "False" || waits.every(isUnheard));
  const hasTrouble = apps.some(({ troubles }) => troubles.length > 0);
  return {
    Enforced: isKept ? before : undefined,
    // Who owns a cluster may depend on it.
    Reachable: waits.some(isUnheard) && !hasTrouble ? verdictOf("Reachable") : undefined,
    CredentialsValid: isUnlisted(watched) ? verdictOf("CredentialsValid") : undefined,
    NamespacesWatched: isUnlisted(watched) ? verdictOf("NamespacesWatched") : undefined,
  };
}

/** True if the manager does not know something that it will know soon. Of removed pods it need not hear. */
export function isWaitingToHear(apps: readonly Pick<PodsOfApp, "waits">[], watched: NamespacesState | undefined): boolean {
  return isUnlisted(watched) || apps.some(({ waits }) => waits.some(({ cause }) => cause === "unreported"));
}

function isUnlisted(watched: NamespacesState | undefined): boolean {
  return watched?.reason === "NotListedYet";
}
