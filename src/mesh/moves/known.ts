// What a client knows of the collection that it lists or watches, and which moves it has not been sent yet.
import type { Version } from "../../kube/resource-version.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { ResourceScope } from "../ownership/plan-query.ts";

/** The objects of one resource that a client lists or watches. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** "namespaced": only moves of namespaces matter; "cluster": only of buckets; "unknown" (default): both. */
  readonly scope?: ResourceScope;
}

/** The value of `told` for a client that this process has sent no move. */
export const TOLD_NOTHING = -1;

export interface Known {
  /** The client has been shown everything up to this version. NEVER if that is not known. */
  readonly version: Version;
  /** The client was sent all moves up to this number; TOLD_NOTHING if only the version says what it knows. */
  readonly told: number;
  /** After these it may miss last events of departed namespaces. Default: `version` and `told`. */
  readonly departed?: Omit<Known, "departed"> | undefined;
}

export type Due =
  | { readonly kind: "nothing" }
  | { readonly kind: "moved"; readonly moved: readonly string[]; readonly departed: readonly string[] }
  /** Too much has moved, or the log has forgotten it: the client has to list. */
  | { readonly kind: "expired" };

/** True if a live watch cannot go on as it is. A watch goes on for the last events of departed namespaces. */
export function hasMoved(due: Due): boolean {
  return due.kind === "expired" || (due.kind === "moved" && due.moved.length > 0);
}

/** A list between its request and the end of its answer. */
export interface OpenList {
  /** Ends the list with the version of its answer; undefined if that cannot be read. */
  answered(version: Version | undefined): void;
  /** Ends the list. Both do nothing once it has ended. */
  end(): void;
}
