// Small lists that the proxy itself sends, as the caller and with the caller's selectors and encoding. Called
// by catch-up.ts and by-namespace.ts, which check the replies.
import { isBucket } from "../../../kube/place.ts";
import type { Version } from "../../../kube/resource-version.ts";
import { joinSelectors } from "../../../route/plan-query.ts";
import { isNamespaces } from "../../../route/snapshot.ts";
import { type Handler, inNamespace, type ResourceCall, withQuery } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";

/**
 * A list of one object of the collection: its version is the API server's newest.
 * @param namespace only an object in it
 */
export function listOne(call: ResourceCall, list: Handler, namespace?: string): Promise<Reply> {
  const query = selectionOf(call);
  query.set("limit", "1");
  if (namespace !== undefined)
    query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), `metadata.namespace=${namespace}`));
  return list({ ...withQuery(call, query), headers: listHeaders(call) });
}

/** The list of one namespace, or of all cluster-scoped objects for a bucket, exactly at a version. */
export function listAt(version: Version, place: string, call: ResourceCall, list: Handler): Promise<Reply> {
  const query = selectionOf(call);
  query.set("resourceVersion", String(version));
  query.set("resourceVersionMatch", "Exact");
  const headers = listHeaders(call);
  const isNamespace = isNamespaces(call.info);
  if (!isNamespace && !isBucket(place)) return list({ ...inNamespace(call, place, query), headers });
  if (isNamespace) query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), `metadata.name=${place}`));
  return list({ ...withQuery(call, query), headers });
}

// What the caller selects, and in which form.
function selectionOf({ info }: ResourceCall): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector", "shardSelector", "includeObject"]) {
    const own = info.query.get(name);
    if (own !== null) query.set(name, own);
  }
  return query;
}

function listHeaders({ headers }: ResourceCall): ResourceCall["headers"] {
  return { ...headers, accept: listAccept(headers.accept ?? "") };
}

// A watch of metadata alone is asked for as PartialObjectMetadata, a list as PartialObjectMetadataList.
function listAccept(accept: string): string {
  return accept.replaceAll(/;\s*as=PartialObjectMetadata(?=\s*(?:[;,]|$))/g, ";as=PartialObjectMetadataList");
}
