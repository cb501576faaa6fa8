// What a list or watch asks for, as the bookkeeping of lists knows it. Pure. Called by the isolate and excluded-callers layers.
import { parseResourceVersion } from "../../../kube/resource-version.ts";
import { isNamespaces } from "../../../route/snapshot.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { CollectionRequest } from "../../filter/sent-request.ts";
import type { Collection } from "../../relist/collection.ts";

/** The collection of a list or watch. The user agent is no part of it: @kubernetes/client-node lists under one name and watches under another. */
export function collectionOf({ info }: ResourceCall): Collection {
  const { group, version, resource, namespace, query } = info;
  const selectors = ["labelSelector", "fieldSelector", "shardSelector"].map((name) => query.get(name) ?? "");
  const shape = JSON.stringify([group, version, resource, namespace, ...selectors]);
  // For `namespaces/x` the info's namespace is x, yet the collection is all of them.
  return { group, resource, namespace: isNamespaces(info) ? "" : namespace, shape };
}

/** What the call asks for. */
export function requestOf(call: ResourceCall, collection: Collection): CollectionRequest {
  const { query } = call.info;
  if (!continuesFromList(call)) return { collection, continues: false };
  return { collection, continues: true, version: parseResourceVersion(query.get("resourceVersion") ?? "") };
}

/**
 * True for a watch that goes on from an earlier list: it has a resourceVersion other than "0" and is no WatchList. Other watches send
 * the whole state first. While a namespace moves, such a watch is never answered 503: client-go repeats it silently with its old
 * version, and would never list again.
 */
export function continuesFromList({ info: { verb, query } }: ResourceCall): boolean {
  const version = query.get("resourceVersion") ?? "";
  const sendsState = (query.get("sendInitialEvents") ?? "false").toLowerCase();
  return verb === "watch" && version !== "" && version !== "0" && (sendsState === "false" || sendsState === "0");
}

/** True for a list from its beginning, or a watch that sends the whole state first: the client then knows the collection. */
export function showsAll(call: ResourceCall): boolean {
  return call.method === "GET" && !continuesFromList(call) && !call.info.query.get("continue");
}
