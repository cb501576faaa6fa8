// What the model API server answers from the history of a resource: lists and events, of whole objects, or of metadata alone where the
// caller accepts only that.
import type { Call } from "../../../src/proxy/call/call.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { jsonReply } from "../../support/layer-call.ts";
import { select } from "../../support/simulated-server.ts";
import { type Change, type History, keyOf } from "./history.ts";

export interface WireEvent {
  readonly type: string;
  readonly object: { readonly kind: string; readonly metadata: Meta; readonly code?: number };
}

export interface Meta {
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function list(history: History, call: Call): Reply {
  const { query } = call.info;
  const exact = query.get("resourceVersionMatch") === "Exact" ? Number(query.get("resourceVersion")) : undefined;
  if (exact !== undefined && history.isCompacted(exact)) return jsonReply({ kind: "Status", code: 410 }, 410);
  // kube-apiserver makes no single PartialObjectMetadata of a list.
  if (isMetadata(call) && !accepts(call, "PartialObjectMetadataList")) return jsonReply({ kind: "Status", code: 406 }, 406);
  const version = exact ?? history.head;
  const found = objectsAt(history, call, version);
  const items = found.slice(0, Number(query.get("limit") ?? found.length)).map((change) => ({ metadata: metadataOf(change) }));
  const type = typeOf(history, call);
  const metadata = { resourceVersion: String(version), ...pageOf(call, found.length - items.length) };
  return jsonReply({ ...type, kind: `${type.kind}List`, metadata, items });
}

// The API server does not count what a selector selects.
function pageOf({ info: { query } }: Call, remaining: number): object {
  if (remaining === 0) return {};
  const isCounted = !query.has("labelSelector") && !query.has("fieldSelector");
  return { continue: "next", ...(isCounted ? { remainingItemCount: remaining } : {}) };
}

/** The existing objects, and the bookmark that says that they were all. */
export function initialEvents(history: History, call: Call): object[] {
  const added = objectsAt(history, call, history.head).map((change) => eventOf("ADDED", history, call, metadataOf(change)));
  return [...added, bookmark(history, call, history.head, { "k8s.io/initial-events-end": "true" })];
}

/** The change as the watch's client sees it; undefined if it does not. */
export function watchEvent(history: History, call: Call, change: Change): object | undefined {
  if (change.type === "OTHER" || select({ objects: [change.object] }, call.info.query).length === 0) return undefined;
  return eventOf(change.type, history, call, metadataOf(change));
}

export function bookmark(history: History, call: Call, version: number, annotations = {}): object {
  return eventOf("BOOKMARK", history, call, { resourceVersion: String(version), annotations });
}

function objectsAt(history: History, { info }: Call, version: number): Change[] {
  const state = history.stateAt(version);
  const objects = [...state.values()].map(({ object }) => object);
  const selected = select({ objects }, info.query, "namespace" in info ? info.namespace : "");
  return selected.flatMap((object) => state.get(keyOf(object)) ?? []);
}

function eventOf(type: string, history: History, call: Call, metadata: object): object {
  return { type, object: { ...typeOf(history, call), metadata } };
}

function metadataOf({ object, version }: Change): object {
  return { ...object, resourceVersion: String(version) };
}

function typeOf({ apiVersion, kind }: History, call: Call): { readonly apiVersion: string; readonly kind: string } {
  return isMetadata(call) ? { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata" } : { apiVersion, kind };
}

function isMetadata(call: Call): boolean {
  return accepts(call, "PartialObjectMetadata") || accepts(call, "PartialObjectMetadataList");
}

function accepts({ headers }: Call, type: string): boolean {
  return String(headers.accept ?? "").includes(`;as=${type};`);
}
