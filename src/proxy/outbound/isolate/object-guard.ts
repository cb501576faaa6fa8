// Limits a subset to its objects of a resource that labels divide. A get of another subset's object is a 404;
// a write needs the stored object and its result to have the subset's labels: the proxy asks for both, as the
// caller. docs/decisions/0008-object-selectors.md says which checks are atomic.
import type { ItemMeta } from "../../../kube/codec/codec.ts";
import { preferredEncoding } from "../../../kube/codec/content-negotiation.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import { mediaTypeOf } from "../../../kube/media-types.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { writesWholeObject } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { refusedByLabels, warnsOnly } from "../../../mesh/ownership/decide.ts";
import { joinSelectors } from "../../../mesh/ownership/plan-query.ts";
import { governingPlace, hasOwnLabels, isBindings, type ResourceView } from "../../../mesh/ownership/snapshot.ts";
import {
  askAsCaller,
  askReadable,
  type Call,
  type Handler,
  identityHeaders,
  noteDecision,
  objectPath,
  type ResourceCall,
  withParameter,
} from "../../call/call.ts";
import { discardBody } from "../../http/byte-stream.ts";
import type { Reply } from "../../http/handler.ts";
import { labelsInRequest, mayChangeLabels, objectsInReply, withBytes } from "./object-labels.ts";
import { passForeign } from "./refusals.ts";

interface GuardedCall {
  readonly call: ResourceCall;
  /** The view by which the call was decided. */
  readonly view: ResourceView;
  readonly next: Handler;
}

export function guardObject(call: ResourceCall, view: ResourceView, next: Handler): Promise<Reply> {
  const guarded: GuardedCall = { call, view, next };
  const { verb, subresource } = call.info;
  const isObject = subresource === "";
  const hasObject = writesWholeObject(call.info);
  switch (verb) {
    case "get":
      return isObject && call.method === "GET" ? readObject(guarded) : behindStored(guarded);
    case "create":
      if (isBindings(call.info)) throw nameless(call);
      if (subresource === "binding") return bindObject(guarded);
      return isObject ? createObject(guarded) : behindStored(guarded);
    case "update":
      return hasObject ? updateObject(guarded) : behindStored(guarded);
    case "patch":
      return hasObject ? patchObject(guarded) : behindStored(guarded);
    case "delete":
      return behindStored(guarded);
    case "deletecollection":
      return deleteCollection(guarded);
    default:
      throw new Error(`checking the labels of an object: ${verb} is narrowed`);
  }
}

async function readObject({ call, view, next }: GuardedCall): Promise<Reply> {
  const reply = await next(askReadable(call));
  if (reply.status !== 200) return reply;
  const { reply: read, objects } = await objectsInReply(reply);
  if (objects.every(({ labels }) => hasOwnLabels(view, labels))) return read;
  if (warnsOnly(view, call.info)) {
    refuseForeignObjects(call, view, objects, "the object");
    return read;
  }
  noteDecision(call.record, "refused", "other-subset");
  throw notFound(call.info);
}

async function createObject({ call, view, next }: GuardedCall): Promise<Reply> {
  const sent = await withBytes(call);
  refuseForeign(call, view, labelsInRequest(sent), "the object in the body");
  return next(sent);
}

// The object will have the labels in the body. For subresources each kind has rules of its own.
async function updateObject({ call, view, next }: GuardedCall): Promise<Reply> {
  const sent = await withBytes(call);
  const labels = labelsInRequest(sent);
  const isPart = call.info.subresource !== "";
  if (!isPart) refuseForeign(call, view, labels, "the object in the body");
  const stored = await askStored({ call: sent, view, next });
  if (stored.kind === "answer" && (stored.reply.status !== 404 || isPart)) return stored.reply;
  // Some kinds are created by an update.
  if (stored.kind === "answer") discardBody(stored.reply.body);
  if (isPart && !hasOwnLabels(view, labels)) return tried({ call: sent, view, next });
  return next(sent);
}

async function patchObject({ call, view, next }: GuardedCall): Promise<Reply> {
  const sent = await withBytes(call);
  const stored = await askStored({ call: sent, view, next });
  const type = mediaTypeOf(call.headers["content-type"]);
  if (stored.kind === "answer") {
    if (stored.reply.status !== 404 || !type.startsWith("application/apply-patch+")) return stored.reply;
    discardBody(stored.reply.body); // an apply creates what is not there
  }
  return mayChangeLabels(type, sent.body) ? tried({ call: sent, view, next }) : next(sent);
}

/** Sends the write only if a dry run shows that its result has the subset's labels. */
async function tried({ call, view, next }: GuardedCall): Promise<Reply> {
  const { "accept-encoding": _, ...headers } = call.headers;
  const trial = withParameter({ ...call, headers: { ...headers, accept: metadataOnly(call) } }, "dryRun", "All");
  const reply = await next(trial);
  if (reply.status !== 200 && reply.status !== 201) return reply;
  const { objects } = await objectsInReply(reply);
  refuseForeignObjects(call, view, objects, "what it would become");
  return next(call);
}

// The API server puts the labels of a Binding over the pod's.
async function bindObject({ call, view, next }: GuardedCall): Promise<Reply> {
  const sent = await withBytes(call);
  const labels = labelsInRequest(sent);
  const stored = await askStored({ call: sent, view, next });
  if (stored.kind === "answer") return stored.reply;
  refuseForeign(call, view, { ...stored.labels, ...labels }, "what it would become");
  return next(sent);
}

// Any other call for an object. A call for a subresource acts on the object too.
async function behindStored(guarded: GuardedCall): Promise<Reply> {
  const stored = await askStored(guarded);
  return stored.kind === "answer" ? stored.reply : guarded.next(guarded.call);
}

// The API server itself selects what it deletes, so this is exact and takes one request.
function deleteCollection({ call, view, next }: GuardedCall): Promise<Reply> {
  if (view.labelFilter === undefined) return next(call);
  return next(
    withParameter(call, "labelSelector", joinSelectors(call.info.query.get("labelSelector"), view.labelFilter.labelSelector)),
  );
}

/** The labels of the subset's stored object, or the API server's answer if it does not return the object. */
type Stored = { readonly kind: "own"; readonly labels: Labels } | { readonly kind: "answer"; readonly reply: Reply };

// Throws Forbidden if the subset does not own the object.
async function askStored({ call, view, next }: GuardedCall): Promise<Stored> {
  const headers = { ...identityHeaders(call.headers), accept: metadataOnly(call) };
  const reply = await next(askAsCaller(call, objectPath(call.info), headers, call.signal));
  if (reply.status !== 200) return { kind: "answer", reply };
  const { objects } = await objectsInReply(reply);
  refuseForeignObjects(call, view, objects, "the object");
  return { kind: "own", labels: objects[0]?.labels ?? {} };
}

const METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

// An error is passed on, so the caller's encoding comes first. Plain JSON is for servers without this type.
function metadataOnly({ headers }: Call): string {
  const json = `application/json;${METADATA},application/json;q=0.9`;
  return preferredEncoding(headers.accept) === "json" ? json : `application/vnd.kubernetes.protobuf;${METADATA},${json}`;
}

/** Refuses the call, or notes a warning where the guard only warns. */
function refuseForeignObjects(call: ResourceCall, view: ResourceView, objects: readonly ItemMeta[], which: string): void {
  for (const { labels } of objects) refuseForeign(call, view, labels, which);
}

function refuseForeign(call: ResourceCall, view: ResourceView, labels: Labels | undefined, which: string): void {
  if (hasOwnLabels(view, labels)) return;
  const { info } = call;
  const owner = view.ownerOf(governingPlace(info.group, info.resource, info), labels ?? {});
  const message = refusedByLabels(info, owner, `${which}, by its labels,`);
  if (warnsOnly(view, info)) {
    passForeign(call, message);
    return;
  }
  noteDecision(call.record, "refused", "other-subset");
  throw new StatusError("Forbidden", message);
}

// Only the body names the pod, so the labels of the pod are not known.
function nameless({ record }: ResourceCall): StatusError {
  noteDecision(record, "refused", "not-narrowable");
  const message = `ctrlmesh: create bindings: labels decide which subset owns a pod, and the path does not name the pod; create pods/binding instead`;
  return new StatusError("Forbidden", message);
}

// The API server's own words (k8s.io/apimachinery/pkg/api/errors, NewNotFound).
function notFound({ group, resource, name }: ResourceInfo): StatusError {
  const type = group === "" ? resource : `${resource}.${group}`;
  const details = { name, ...(group === "" ? {} : { group }), kind: resource };
  return new StatusError("NotFound", `${type} ${JSON.stringify(name)} not found`, details);
}
