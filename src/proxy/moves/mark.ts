// Where a change stands among the versions of a resource, and among the changes of the routes. Pure.
import type { Version } from "../../kube/resource-version.ts";

export interface Mark {
  /** Everything of the resource that clients were given before the change is of this version or an earlier one. */
  readonly version: Version;
  /** Number of the snapshot that brought the change, as this process counts them. Changes of an earlier process have 0. */
  readonly sequence: number;
}

/** As `told`: a client that this process has told of no move. */
export const TOLD_NOTHING = -1;
