// What a list or watch asks for. Pure.
import { isTrue } from "../../../kube/request-info.ts";
import { parseResourceVersion } from "../../../kube/resource-version.ts";
import type { ResourceScope } from "../../../route/plan-query.ts";
import { isNamespaces } from "../../../route/snapshot.ts";
import type { ResourceCall } from "../../call/call.ts";
import type { CollectionRequest } from "../../filter/sent-request.ts";
import type { Collection } from "../../moves/collection.ts";

/** The collection and the version that a list or watch asks for. */
export function requestOf(call: ResourceCall, scope: ResourceScope): CollectionRequest {
  const { group, resource, namespace, query } = call.info;
  // For `namespaces/x` the info's namespace is x, yet the collection is all of them.
  const collection: Collection = {
    group,
    resource,
    namespace: isNamespaces(call.info) ? "" : namespace,
    scope: isNamespaces(call.info) ? "namespaced" : scope,
  };
  return continuesFromList(call)
    ? { collection, version: parseResourceVersion(query.get("resourceVersion") ?? "") }
    : { collection };
}

/**
 * True for a watch that goes on from an earlier list: it has a resourceVersion other than "0" and is no
 * WatchList. Other watches send the whole state first. While a namespace moves, such a watch is never
 * answered 503: client-go repeats it silently with its old version, and would never list again.
 */
export function continuesFromList({ info: { verb, query } }: ResourceCall): boolean {
  const version = query.get("resourceVersion") ?? "";
  const sendsState = (query.get("sendInitialEvents") ?? "false").toLowerCase();
  return verb === "watch" && version !== "" && version !== "0" && (sendsState === "false" || sendsState === "0");
}

/** True if the client of the watch understands events of type BOOKMARK. */
export function takesBookmarks({ info }: ResourceCall): boolean {
  return isTrue(info.query.get("allowWatchBookmarks"));
}
