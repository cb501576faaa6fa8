// Makes a MeshCluster from each ClusterProfile of one namespace, while an app of the namespace divides clusters. Invariant: a profile
// that cannot be used, or an object that cannot be written, delays no other one.
import type { ClusterProfile } from "../../api/cluster-profile.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { errorMessage } from "../../base/errors.ts";
import { isNamespaceEnding, isStatus } from "../../kube/status.ts";
import { createIfMissing } from "../../runtime/ensure.ts";
import { preconditions } from "../../runtime/patch-current.ts";
import type { Reconciler } from "../../runtime/reconciler.ts";
import { AGAIN_MS } from "../../runtime/served-version.ts";
import type { Store } from "../../runtime/store.ts";
import { dividesClusters, isLive } from "../apps/app.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import { type MeshClusterPlan, type ProfileNotice, planMeshClusters } from "./plan-mesh-clusters.ts";
import type { ProfileWatch } from "./profile-watch.ts";

interface ProfilesReconcilerOptions extends Pick<ManagerContext, "apps" | "client" | "events" | "clock"> {
  readonly store: Pick<Store<MeshCluster>, "list" | "wrote">;
  readonly profiles: ProfileWatch;
}

export function createProfilesReconciler({
  apps,
  client,
  events,
  clock,
  store,
  profiles,
}: ProfilesReconcilerOptions): Reconciler {
  /** By namespace: the last text about each profile, by its uid. */
  const told = new Map<string, ReadonlyMap<string, string>>();

  function tell(namespace: string, notices: readonly ProfileNotice[]): void {
    const before = told.get(namespace);
    for (const { profile, reason, message } of notices) {
      if (before?.get(profile.metadata.uid ?? "") !== message) events.event(profile, "Warning", reason, message);
    }
    told.set(namespace, new Map(notices.map(({ profile, message }) => [profile.metadata.uid ?? "", message])));
  }

  /** The errors, after everything else was written. */
  async function write({ created, changed }: MeshClusterPlan, signal: AbortSignal): Promise<WriteError[]> {
    const errors: WriteError[] = [];
    const attempt = async (profile: ClusterProfile, writing: Promise<MeshCluster | undefined>) => {
      try {
        const written = await writing;
        if (written !== undefined) store.wrote(written);
      } catch (error) {
        signal.throwIfAborted();
        errors.push({ profile, error });
      }
    };
    for (const { profile, object } of created) {
      await attempt(profile, createIfMissing(client, MESH_CLUSTERS, object, signal));
    }
    for (const { profile, stored, patch } of changed) {
      const { namespace, name = "" } = stored.metadata;
      const { metadata, ...fields } = patch as { readonly metadata?: object };
      const body = { ...fields, metadata: { ...metadata, ...preconditions(stored) } };
      await attempt(profile, client.patch(MESH_CLUSTERS, { namespace, name }, { type: "merge", body }, { signal }));
    }
    return errors;
  }

  return {
    async reconcile({ name: namespace }, signal) {
      if (!apps.list(namespace).some((app) => isLive(app) && dividesClusters(app))) {
        profiles.forget(namespace);
        told.delete(namespace);
        return {};
      }
      const listed = await profiles.list(namespace, signal);
      if (listed === undefined) return { requeueAfterMs: AGAIN_MS };
      const plan = planMeshClusters(listed.profiles, store.list(namespace), listed.resource, clock.now());
      const errors = (await write(plan, signal)).filter(({ error }) => !isNamespaceEnding(error));
      tell(namespace, [...plan.notices, ...errors.flatMap(noticeOf)]);
      if (errors[0] !== undefined) throw errors[0].error;
      return { requeueAfterMs: AGAIN_MS };
    },
  };
}

interface WriteError {
  readonly profile: ClusterProfile;
  readonly error: unknown;
}

function noticeOf({ profile, error }: WriteError): ProfileNotice[] {
  // Somebody else was faster: the next attempt sees what is there.
  if (isStatus(error, "Conflict", "NotFound")) return [];
  const { name = "" } = profile.metadata;
  return [{ profile, reason: "MeshClusterNotWritten", message: `MeshCluster ${name}: ${errorMessage(error)}` }];
}
