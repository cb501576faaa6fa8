// What a client's list asks for, where lists by namespace can answer it. Pure. Called by by-namespace.ts.
import { NEVER, parseResourceVersion, type Version } from "../../../kube/resource-version.ts";
import type { ResourceCall } from "../../call/call.ts";

export interface AskedList {
  /** The one version that the client accepts; undefined: the newest will do. */
  readonly exact: Version | undefined;
  /** No earlier version will do. */
  readonly atLeast: Version;
  /** Equal for lists that show the same, in the same form. */
  readonly key: string;
  /** The API server does not count the objects that a selector selects. */
  readonly hasSelectors: boolean;
}

/**
 * A client with a smaller limit wants little. A larger one protects client and server from a long answer, and the API server itself ignores
 * it for lists from its cache. client-go and kubectl send 500.
 */
const MIN_LIMIT = 500;

/** Undefined for a page, for a few objects, and for what the API server may refuse or reads otherwise. */
export function askedList({ method, info, headers, record }: ResourceCall): AskedList | undefined {
  const { query } = info;
  const textOf = (name: string) => query.get(name) ?? "";
  if (method !== "GET" || info.verb !== "list" || record.tellsListsApart) return undefined;
  if (textOf("continue") !== "" || query.has("shardSelector") || query.has("pretty")) return undefined;
  const limit = Number(textOf("limit"));
  if (limit !== 0 && !(limit >= MIN_LIMIT)) return undefined;
  const versions = versionsOf(textOf("resourceVersion"), textOf("resourceVersionMatch"), limit > 0);
  const selectors = [textOf("labelSelector"), textOf("fieldSelector")];
  const key = [headers.accept, textOf("includeObject"), `${info.group}/${info.version}/${info.resource}`, ...selectors].join(
    "\n",
  );
  return versions && { ...versions, key, hasSelectors: selectors.some((selector) => selector !== "") };
}

// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
function versionsOf(version: string, match: string, hasLimit: boolean): Pick<AskedList, "exact" | "atLeast"> | undefined {
  if (version === "") return match === "" ? { exact: undefined, atLeast: NEVER } : undefined;
  if (version === "0") return match === "" || match === "NotOlderThan" ? { exact: undefined, atLeast: NEVER } : undefined;
  const parsed = parseResourceVersion(version);
  if (parsed === undefined) return undefined;
  if (match === "NotOlderThan" || (match === "" && !hasLimit)) return { exact: undefined, atLeast: parsed };
  return match === "Exact" || match === "" ? { exact: parsed, atLeast: parsed } : undefined;
}
