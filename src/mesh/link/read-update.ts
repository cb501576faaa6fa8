// Reads an update of the routes and decides whether this proxy may enforce them. Pure. Invariant: what is
// taken is for this pod's namespace, and is not older than what is in force.
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { ResourceMessage, UpdateMessage } from "../contract/messages.ts";
import { ResourceInvalidError } from "../contract/resource-type.ts";
import { ROUTE } from "../contract/route-type.ts";
import type { Snapshot } from "../ownership/snapshot.ts";

export type ReadUpdate =
  | { readonly kind: "take"; readonly routes: Snapshot }
  | {
      readonly kind: "refuse";
      /** `error`: a defect, which no rule of the resource explains. */
      readonly reason: "invalid" | "stale" | "error";
      readonly problems: readonly string[];
      readonly error: unknown;
    }
  /** The delta does not lead from the routes in force to others. */
  | { readonly kind: "needs-whole"; readonly error: unknown };

export function readUpdate(
  { resource, baseDigest }: UpdateMessage,
  inForce: Snapshot | undefined,
  podNamespace: string,
): ReadUpdate {
  if (resource === null) return refuse(new ResourceInvalidError(["resource: missing"]));
  if (baseDigest === "") return check(() => ROUTE.decode(resource.body, resource), inForce, podNamespace);
  let routes: Snapshot;
  try {
    routes = applyDelta(resource, baseDigest, inForce);
  } catch (error) {
    return { kind: "needs-whole", error };
  }
  return check(() => routes, inForce, podNamespace);
}

function applyDelta({ body, version, digest }: ResourceMessage, baseDigest: string, base: Snapshot | undefined): Snapshot {
  if (ROUTE.delta === undefined || base?.digest !== baseDigest)
    throw new MeshError("DELTA_BASE", "delta to a snapshot that is not in force");
  return ROUTE.delta.apply(base, body, { version, digest });
}

function check(read: () => Snapshot, inForce: Snapshot | undefined, podNamespace: string): ReadUpdate {
  try {
    return { kind: "take", routes: checked(read(), inForce, podNamespace) };
  } catch (error) {
    return refuse(error);
  }
}

function checked(routes: Snapshot, inForce: Snapshot | undefined, podNamespace: string): Snapshot {
  if (routes.podNamespace !== podNamespace)
    throw new ResourceInvalidError([`podNamespace: ${routes.podNamespace} is not this pod's namespace ${podNamespace}`]);
  if (inForce === undefined || routes.version >= inForce.version) return routes;
  // Equal rules with an older version are accepted. The version in force stays.
  if (routes.digest === inForce.digest) return { ...routes, version: inForce.version };
  throw new MeshError("SNAPSHOT_STALE", `version: ${routes.version} is older than ${inForce.version}, which is in force`);
}

function refuse(error: unknown): ReadUpdate {
  if (error instanceof ResourceInvalidError) return { kind: "refuse", reason: "invalid", problems: error.problems, error };
  const reason = isMeshError(error, "SNAPSHOT_STALE") ? "stale" : "error";
  return { kind: "refuse", reason, problems: [errorMessage(error)], error };
}
