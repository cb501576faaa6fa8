// The moves that a process leaves to the next one, and their form in the snapshot file. Pure. Invariant: what is read is what was written,
// or an error. Used by the move log and the snapshot file.
import { MeshError } from "../../base/errors.ts";
import { NEVER, parseResourceVersion, type Version, WITHOUT_END } from "../../kube/resource-version.ts";

export interface StoredMove {
  readonly name: string;
  readonly version: Version;
  readonly isDeparted: boolean;
}

/** What is stored of one resource. */
export interface StoredResource {
  /** At or below it, a version is expired. */
  readonly horizon: Version;
  /** The same for collections with objects in namespaces. */
  readonly namespacesHorizon: Version;
  readonly moves: readonly StoredMove[];
}

/** Of a resource that an earlier process may have served, but not before its last routes. */
export const UNMOVED: StoredResource = { horizon: NEVER, namespacesHorizon: NEVER, moves: [] };
/** Of a resource of which nothing is known. */
export const LOST: StoredResource = { horizon: WITHOUT_END, namespacesHorizon: WITHOUT_END, moves: [] };

export interface StoredMoves {
  /** By `group/resource`. */
  readonly resources: ReadonlyMap<string, StoredResource>;
  /** Namespaces have moved of resources that are not listed, but were served by a still earlier process. */
  readonly hasLostOthers: boolean;
}

export const NO_MOVES: StoredMoves = { resources: new Map(), hasLostOthers: false };

/** What an earlier process has left: nothing because there was none, something that is lost, or the moves. */
export type MovesBefore = "none" | "lost" | StoredMoves;

/** A version, "" if it is not known, "0" for none. */
type VersionText = string;

/** The moves in JSON. */
export interface MovesContent {
  readonly hasLostOthers: boolean;
  readonly resources: Readonly<Record<string, ResourceContent>>;
}

interface ResourceContent {
  readonly horizon: VersionText;
  readonly namespacesHorizon: VersionText;
  /** A departed namespace has a third element. */
  readonly moves: readonly (readonly [string, VersionText, 1?])[];
}

export function movesToContent({ resources, hasLostOthers }: StoredMoves): MovesContent {
  const entries = [...resources].map(([key, of]): [string, ResourceContent] => {
    const moves = of.moves.map(({ name, version, isDeparted }): [string, string, 1?] =>
      isDeparted ? [name, textOf(version), 1] : [name, textOf(version)],
    );
    return [key, { horizon: textOf(of.horizon), namespacesHorizon: textOf(of.namespacesHorizon), moves }];
  });
  return { hasLostOthers, resources: Object.fromEntries(entries) };
}

/** @throws MeshError `SNAPSHOT_FILE` */
export function movesFromContent({ resources, hasLostOthers }: MovesContent): StoredMoves {
  const entries = Object.entries(resources).map(([key, { horizon, namespacesHorizon, moves }]): [string, StoredResource] => {
    const named = moves.map(([name, version, departed]): StoredMove => {
      if (typeof name !== "string") throw malformed();
      return { name, version: versionOf(version), isDeparted: departed === 1 };
    });
    return [key, { horizon: versionOf(horizon), namespacesHorizon: versionOf(namespacesHorizon), moves: named }];
  });
  return { resources: new Map(entries), hasLostOthers: hasLostOthers !== false };
}

function textOf(version: Version): VersionText {
  return version === WITHOUT_END ? "" : String(version);
}

function versionOf(text: VersionText): Version {
  if (text === "") return WITHOUT_END;
  if (text === "0") return NEVER;
  const version = typeof text === "string" ? parseResourceVersion(text) : undefined;
  if (version === undefined) throw malformed();
  return version;
}

function malformed(): MeshError {
  return new MeshError("SNAPSHOT_FILE", "reading stored snapshot: its moves are malformed");
}
