// The PlacementDecisions of other programs, in the namespaces that ask for them. Invariant: they are watched only while the API server
// serves the kind, so a missing CRD makes no failing lists.
import { PLACEMENT_DECISIONS, PLACEMENT_VERSION, type PlacementDecision } from "../../api/placement-decision.ts";
import { createServedVersion } from "../../runtime/served-version.ts";
import { FOREIGN_DECISIONS } from "../apps/chosen-clusters.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import { createKindWatch } from "../facts/kind-watch.ts";

export interface DecisionWatchOptions extends Pick<ManagerContext, "client" | "informers" | "clock" | "log"> {
  readonly onChange: (namespace: string) => void;
}

export type DecisionWatch = ReturnType<typeof createDecisionWatch>;

export function createDecisionWatch({ client, informers, clock, log, onChange }: DecisionWatchOptions) {
  const { group, resource } = PLACEMENT_DECISIONS;
  const served = createServedVersion({ client, clock, group, resource, versions: [PLACEMENT_VERSION] });
  const watch = createKindWatch({
    resource: PLACEMENT_DECISIONS,
    labelSelector: FOREIGN_DECISIONS,
    informers,
    log,
    onChange: ({ namespace }) => onChange(namespace),
  });
  const requestOf = (namespace: string) => ({ namespace, name: "" });
  return {
    /** The objects of the namespace, which is watched from now on: none while the kind is absent, undefined until they are listed. */
    async list(namespace: string, signal: AbortSignal): Promise<readonly PlacementDecision[] | undefined> {
      if ((await served.read(signal)) !== undefined) return watch.list(requestOf(namespace));
      watch.forget(requestOf(namespace));
      return [];
    },
    forget: (namespace: string) => watch.forget(requestOf(namespace)),
  };
}
