// What a log of moves keeps over restarts of the proxy. Invariant: moves that are read are those that were
// written, or all are lost.
import { z } from "zod";
import { NEVER, parseResourceVersion, type Version, WITHOUT_END } from "../../kube/resource-version.ts";

export interface MovesMemory {
  /** What the process before this one has left; undefined if there was none. */
  readonly before: StoredMoves | undefined;
  keep(read: () => StoredMoves): void;
}

export interface StoredResource {
  /** At or below it, a version is expired. */
  readonly horizon: Version;
  /** The same for collections with objects in namespaces. */
  readonly namespacesHorizon: Version;
  /** Departed namespaces, whose last events are still to be shown. */
  readonly departed: readonly string[];
}

/** For a resource that an earlier process may have served, but only under its last routes. */
export const UNMOVED: StoredResource = { horizon: NEVER, namespacesHorizon: NEVER, departed: [] };
/** For a resource of which nothing is known. */
export const LOST: StoredResource = { horizon: WITHOUT_END, namespacesHorizon: WITHOUT_END, departed: [] };

export interface StoredMoves {
  /** By `group/resource`. */
  readonly resources: ReadonlyMap<string, StoredResource>;
  /** A still earlier process served other resources than those listed, and namespaces have moved since. */
  readonly hasLostOthers: boolean;
}

/** After a process that may have served anything. */
export const LOST_MOVES: StoredMoves = { resources: new Map(), hasLostOthers: true };

/** A version is "" if it is not known, and "0" for none. */
const VERSION = z.string().transform((text, context): Version => {
  if (text === "") return WITHOUT_END;
  if (text === "0") return NEVER;
  const version = parseResourceVersion(text);
  if (version !== undefined) return version;
  context.addIssue("not a version");
  return z.NEVER;
});
const RESOURCE = z.object({ horizon: VERSION, namespacesHorizon: VERSION, departed: z.array(z.string()) });
const CONTENT = z.object({ resources: z.array(z.tuple([z.string(), RESOURCE])), hasLostOthers: z.boolean() });

export type MovesContent = z.input<typeof CONTENT>;

export function movesToContent({ resources, hasLostOthers }: StoredMoves): MovesContent {
  const stored = [...resources].map(([key, { horizon, namespacesHorizon, departed }]): MovesContent["resources"][number] => [
    key,
    { horizon: textOf(horizon), namespacesHorizon: textOf(namespacesHorizon), departed: [...departed] },
  ]);
  return { resources: stored, hasLostOthers };
}

/** Everything is lost if the content is absent or malformed. */
export function movesFromContent(content: unknown): StoredMoves {
  const { data } = CONTENT.safeParse(content);
  return data === undefined ? LOST_MOVES : { ...data, resources: new Map(data.resources) };
}

function textOf(version: Version): string {
  return version === WITHOUT_END ? "" : String(version);
}
