// What a client knows of the collection that it lists or watches, and which moves it has not been sent yet.

import type { Version } from "../../kube/resource-version.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { ResourceScope } from "../../route/plan-query.ts";

/** The objects of one resource that a client lists or watches. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** Moves of namespaces concern it, or of buckets of the cluster scope, or with "unknown" (default) both. */
  readonly scope?: ResourceScope;
}

/** As `told`: a client that this process has sent no move. */
export const TOLD_NOTHING = -1;

/** What a client knows of its collection. */
export interface Known {
  /** The version as of which it has been shown everything. NEVER if that is not known. */
  readonly version: Version;
  /** It was sent all moves up to this number; TOLD_NOTHING if only the version says what it knows. */
  readonly told: number;
  /** From where on it may miss the last events of departed namespaces. Default: `version` and `told`. */
  readonly departed?: Omit<Known, "departed"> | undefined;
}

/** What a client has not been sent yet. */
export type Due =
  | { readonly kind: "nothing" }
  | { readonly kind: "moved"; readonly moved: readonly string[]; readonly departed: readonly string[] }
  /** Too much, or it is not known any more: the client has to list. */
  | { readonly kind: "expired" };

/** True if a live watch cannot go on as it is. It still gets the last events of departed namespaces. */
export function hasMoved(due: Due): boolean {
  return due.kind === "expired" || (due.kind === "moved" && due.moved.length > 0);
}

/** A list between its request and the end of its answer. */
export interface OpenList {
  /** The version is known; undefined if it cannot be read. Later calls do nothing. */
  answered(version: Version | undefined): void;
  /** It is over. Does nothing after `answered`. */
  end(): void;
}
