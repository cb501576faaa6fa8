// The ClusterProfiles of the namespaces that ask for them, in the version that the API server serves. Invariant: a namespace is watched
// in that version only, and not at all while the kind is absent, so a missing CRD makes no failing lists.
import {
  type ClusterProfile,
  clusterProfiles,
  INVENTORY_GROUP,
  PROFILE_VERSIONS,
  type ProfileVersion,
} from "../../api/cluster-profile.ts";
import { rememberNames } from "../../base/remember.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { changed } from "../../runtime/controller.ts";
import { createServedVersion } from "../../runtime/served-version.ts";
import type { ManagerContext } from "../context/manager-context.ts";
import { createKindWatch, type KindWatch } from "../facts/kind-watch.ts";

export interface ProfileWatchOptions extends Pick<ManagerContext, "client" | "informers" | "clock" | "log"> {
  readonly onChange: (namespace: string) => void;
}

export interface ListedProfiles {
  readonly resource: Resource<ClusterProfile>;
  readonly profiles: readonly ClusterProfile[];
}

export type ProfileWatch = ReturnType<typeof createProfileWatch>;

export function createProfileWatch({ client, informers, clock, log, onChange }: ProfileWatchOptions) {
  const served = createServedVersion({
    client,
    clock,
    group: INVENTORY_GROUP,
    resource: "clusterprofiles",
    versions: PROFILE_VERSIONS,
  });
  const resources = rememberNames(clusterProfiles);
  const watchOf: (version: ProfileVersion) => KindWatch<ClusterProfile> = rememberNames((version: ProfileVersion) =>
    createKindWatch({
      resource: resources(version),
      informers,
      log,
      onChange: ({ namespace }) => onChange(namespace),
      matters: changed(relevantParts),
    }),
  );
  const forget = (namespace: string, kept?: ProfileVersion) => {
    for (const version of PROFILE_VERSIONS) if (version !== kept) watchOf(version).forget(requestOf(namespace));
  };
  return {
    /** The profiles of the namespace, which is watched from now on; undefined until they are listed, and while the kind is absent. */
    async list(namespace: string, signal: AbortSignal): Promise<ListedProfiles | undefined> {
      const version = await served.read(signal);
      forget(namespace, version);
      const profiles = version && watchOf(version).list(requestOf(namespace));
      return version && profiles && { resource: resources(version), profiles };
    },
    forget: (namespace: string) => forget(namespace),
  };
}

/** Cluster managers write conditions and times of observation again and again. */
function relevantParts({ metadata, status }: ClusterProfile): unknown {
  const { accessProviders, credentialProviders, properties } = (status ?? {}) as Readonly<Record<string, unknown>>;
  return [metadata.labels, metadata.deletionTimestamp, metadata.uid, accessProviders, credentialProviders, properties];
}

function requestOf(namespace: string) {
  return { namespace, name: "" };
}
