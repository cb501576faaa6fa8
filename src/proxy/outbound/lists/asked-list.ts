// What a client's list, or the beginning of its watch, asks for, where lists by namespace can answer it, and
// the form of that answer. Pure.
import { createListJoiner, type Encoding, type ListJoiner } from "../../../kube/codec/codec.ts";
import { createEventJoiner } from "../../../kube/codec/list-events.ts";
import { isTrue } from "../../../kube/request-info.ts";
import { NEVER, parseResourceVersion, type Version } from "../../../kube/resource-version.ts";
import type { ResourceCall } from "../../call/call.ts";
import { continuesFromList, takesBookmarks } from "./collection-request.ts";

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

/** An answer that is made of lists by namespace: one list, or what a watch begins with. */
export interface ListForm {
  readonly asked: AskedList;
  /** Each object becomes a watch event. */
  readonly isEvents: boolean;
  /** Bound of the whole answer; undefined if it is streamed. */
  maxBytesOf(encoding: Encoding): number | undefined;
  createJoiner(encoding: Encoding, version: Version): ListJoiner;
}

/** A protobuf list is held until its length is known. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

/** The form of a list; undefined if lists by namespace cannot answer it. */
export function listForm(call: ResourceCall): ListForm | undefined {
  const asked = askedList(call);
  if (asked === undefined) return undefined;
  return {
    asked,
    isEvents: false,
    maxBytesOf: (encoding) => (encoding === "protobuf" ? MAX_HELD_BYTES : undefined),
    createJoiner: (encoding, version) => createListJoiner(encoding, version, { maxHeldBytes: MAX_HELD_BYTES }),
  };
}

/** The form of the events with which a watch begins; undefined if lists by namespace cannot answer them. */
export function eventsForm(call: ResourceCall): ListForm | undefined {
  const asked = askedInitialEvents(call);
  if (asked === undefined) return undefined;
  return {
    asked,
    isEvents: true,
    maxBytesOf: () => undefined,
    createJoiner: (encoding, version) => createEventJoiner(encoding, version, { hasBookmark: takesBookmarks(call) }),
  };
}

/**
 * A client with a smaller limit wants little. A larger one protects client and server from a long answer, and
 * the API server itself ignores it for lists from its cache. client-go and kubectl send 500.
 */
const MIN_LIMIT = 500;
const TABLE = /;\s*as=Table\s*(?:[;,]|$)/;

/**
 * What a list asks for. Undefined for a page, for a few objects, and for what the API server may refuse or
 * reads otherwise.
 */
export function askedList(call: ResourceCall): AskedList | undefined {
  const { query, verb } = call.info;
  const limit = Number(query.get("limit") ?? "");
  if (verb !== "list" || (limit !== 0 && !(limit >= MIN_LIMIT))) return undefined;
  const version = query.get("resourceVersion") ?? "";
  return askedIn(call, versionsOf(version, query.get("resourceVersionMatch") ?? "", limit > 0));
}

/**
 * The same for a watch that begins with what there is, whether its client asks for that by
 * `sendInitialEvents` or, as before that parameter, by leaving out the version. Undefined also for events
 * with Tables, where the API server computes cells for the bookmark.
 */
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
  const key = [headers.accept, textOf("includeObject"), `${info.group}/${info.version}/${info.resource}`, ...selectors].join(
    "\n",
  );
  return versions && { ...versions, key, hasSelectors: selectors.some((selector) => selector !== "") };
}

type Versions = Pick<AskedList, "exact" | "atLeast">;

// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
function versionsOf(version: string, match: string, hasLimit: boolean): Versions | undefined {
  if (version === "") return match === "" ? { exact: undefined, atLeast: NEVER } : undefined;
  if (version === "0") return match === "" || match === "NotOlderThan" ? { exact: undefined, atLeast: NEVER } : undefined;
  const parsed = parseResourceVersion(version);
  if (parsed === undefined) return undefined;
  if (match === "NotOlderThan" || (match === "" && !hasLimit)) return { exact: undefined, atLeast: parsed };
  return match === "Exact" || match === "" ? { exact: parsed, atLeast: parsed } : undefined;
}
