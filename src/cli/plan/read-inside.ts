// What `ctrlmesh plan` knows of the namespaces inside other clusters: their owners from the OwnershipSlices, and what the user has named.
// It needs no access to these clusters.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { type NamespaceFacts, namespaceFacts } from "../../manager/apps/compile/route-spec.ts";
import { listSlices, type OwnedPlace, placesOf } from "../apps/owned-places.ts";
import { readNamespaces } from "../apps/read-objects.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, failure, usageError } from "../frame/command.ts";

/** @param flags CLUSTER=FILE @throws MeshError `USAGE`, `COMMAND_FAILED` */
export async function namedInside(
  flags: readonly string[],
  readFile: Call["readFile"],
): Promise<ReadonlyMap<string, readonly NamespaceFacts[]>> {
  const named = new Map<string, readonly NamespaceFacts[]>();
  for (const flag of flags) {
    const [, cluster, file] = /^([^=]+)=(.+)$/.exec(flag) ?? [];
    if (cluster === undefined || file === undefined) throw usageError(`--inside ${flag}: write it as CLUSTER=FILE`);
    if (named.has(cluster)) throw usageError(`--inside: ${cluster} is named twice`);
    named.set(cluster, readNamespaces(file, await readFile(file)).map(namespaceFacts));
  }
  return named;
}

/** @throws MeshError `COMMAND_FAILED` for a cluster whose namespaces nobody divides */
export function checkNamed(name: string, clusters: readonly MeshCluster[], home: string): void {
  const found = clusters.filter(({ metadata }) => metadata.namespace === home && metadata.name === name);
  if (found.length === 0) throw failure(`--inside: there is no MeshCluster ${name} in namespace ${home}`);
  if (!found.some(isDivided))
    throw failure(`--inside: the namespaces of MeshCluster ${name} are divided only with interception: Terminate`);
}

interface Owned {
  readonly owned: readonly OwnedPlace[];
  /** Why they could not be read. */
  readonly unread?: string;
}

/** The slices are read only where the namespaces of a cluster are divided: elsewhere users need no right to do so. */
export async function readOwned(cluster: Cluster, clusters: readonly MeshCluster[]): Promise<Owned> {
  const places = new Set(clusters.filter(isDivided).map(({ metadata }) => metadata.namespace));
  try {
    const slices = (await Promise.all([...places].map((place) => listSlices(cluster, place, undefined)))).flat();
    return { owned: slices.flatMap(placesOf).filter((place) => place.cluster !== undefined) };
  } catch (error) {
    if (isMeshError(error, "NO_ANSWER") || isMeshError(error, "NOT_LOGGED_IN")) throw error;
    return { owned: [], unread: errorMessage(error) };
  }
}

/** Of an object in any form. */
function isDivided({ spec }: { readonly spec?: { readonly interception?: unknown } | undefined }): boolean {
  return spec?.interception === "Terminate";
}
