// What a list or watch asks for, and whether lists by namespace can answer it. Pure.
import { isTrue } from "../../../kube/request-info.ts";
import { NEVER, parseResourceVersion, type Version } from "../../../kube/resource-version.ts";
import type { ResourceScope } from "../../../mesh/ownership/plan-query.ts";
import { isNamespaces } from "../../../mesh/ownership/snapshot.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { CollectionRequest } from "../../filter/sent-request.ts";

export function requestOf(call: ResourceCall, scope: ResourceScope): CollectionRequest {
  const { group, resource, namespace, query } = call.info;
  // For `namespaces/x` the info's namespace is x, yet the collection is all of them.
  const collection = isNamespaces(call.info)
    ? ({ group, resource, namespace: "", scope: "namespaced" } as const)
    : { group, resource, namespace, scope };
  return continuesFromList(call)
    ? { collection, version: parseResourceVersion(query.get("resourceVersion") ?? "") }
    : { collection };
}

/**
 * True for a watch that continues from an earlier list. Other watches send the whole state first. Such a
 * watch is never answered 503: client-go repeats it silently with its old version, and would never list
 * again.
 */
export function continuesFromList({ info: { verb, query } }: ResourceCall): boolean {
  const version = query.get("resourceVersion") ?? "";
  const sendsState = (query.get("sendInitialEvents") ?? "false").toLowerCase();
  return verb === "watch" && version !== "" && version !== "0" && (sendsState === "false" || sendsState === "0");
}

export function takesBookmarks({ info }: ResourceCall): boolean {
  return isTrue(info.query.get("allowWatchBookmarks"));
}

interface Versions {
  /** The one version that the client accepts; undefined for the newest. */
  readonly exact: Version | undefined;
  /** The earliest version that the client accepts. */
  readonly atLeast: Version;
}

/** A list, or the beginning of a watch, that lists by namespace can answer. */
export interface AskedList extends Versions {
  /** Equal for lists of the same objects in the same form. */
  readonly key: string;
  /** The API server does not count the objects that a selector selects. */
  readonly hasSelectors: boolean;
}

/** A client with a smaller limit wants few objects. A larger limit only makes pages: client-go sends 500. */
const MIN_LIMIT = 500;
const TABLE = /;\s*as=Table\s*(?:[;,]|$)/;

/** Undefined for a page, for a few objects, and for what the API server may refuse or read otherwise. */
export function askedList(call: ResourceCall): AskedList | undefined {
  const { query, verb } = call.info;
  const limit = Number(query.get("limit") ?? "");
  if (verb !== "list" || (limit !== 0 && !(limit >= MIN_LIMIT))) return undefined;
  const version = query.get("resourceVersion") ?? "";
  return askedIn(call, versionsOf(version, query.get("resourceVersionMatch") ?? "", limit > 0));
}

/** Also undefined for Tables: the API server computes cells for the bookmark, and the proxy cannot. */
export function askedInitialEvents(call: ResourceCall): AskedList | undefined {
  const { query, verb, legacyWatch } = call.info;
  if (verb !== "watch" || legacyWatch || continuesFromList(call) || TABLE.test(call.headers.accept ?? "")) return undefined;
  const match = query.get("resourceVersionMatch") ?? "";
  const sendsState = query.get("sendInitialEvents");
  if (sendsState === null ? match !== "" : !isTrue(sendsState) || match !== "NotOlderThan") return undefined;
  return askedIn(call, versionsOf(query.get("resourceVersion") || "0", match, false));
}

function askedIn({ method, info, headers, record }: ResourceCall, versions: Versions | undefined): AskedList | undefined {
  const { query } = info;
  const textOf = (name: string) => query.get(name) ?? "";
  if (method !== "GET" || record.tellsListsApart) return undefined;
  if (textOf("continue") !== "" || query.has("shardSelector") || query.has("pretty")) return undefined;
  const selectors = [textOf("labelSelector"), textOf("fieldSelector")];
  const resource = `${info.group}/${info.version}/${info.resource}`;
  const key = [headers.accept, textOf("includeObject"), resource, ...selectors].join("\n");
  return versions && { ...versions, key, hasSelectors: selectors.some((selector) => selector !== "") };
}

// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
function versionsOf(version: string, match: string, hasLimit: boolean): Versions | undefined {
  if (version === "") return match === "" ? { exact: undefined, atLeast: NEVER } : undefined;
  if (version === "0") return match === "" || match === "NotOlderThan" ? { exact: undefined, atLeast: NEVER } : undefined;
  const parsed = parseResourceVersion(version);
  if (parsed === undefined) return undefined;
  if (match === "NotOlderThan" || (match === "" && !hasLimit)) return { exact: undefined, atLeast: parsed };
  return match === "Exact" || match === "" ? { exact: parsed, atLeast: parsed } : undefined;
}
