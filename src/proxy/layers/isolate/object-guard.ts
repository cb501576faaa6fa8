// Keeps a subset to its objects where labels, and not namespaces, say whose they are. A get of another one's object is answered as
// the API server answers for one that is not there; a write needs the stored object and what it becomes to be ours. Both are asked
// of the API server as the caller. Called by the isolate layer for single objects and deletecollection; lists and watches
// are narrowed like others. docs/decisions/0008-object-selectors.md says which checks are atomic with their write.
import { preferredEncoding } from "../../../kube/codec/content-negotiation.ts";
import type { ItemMeta } from "../../../kube/codec/types.ts";
import type { Labels } from "../../../kube/label-selector.ts";
import { parseRequestInfo, type ResourceInfo } from "../../../kube/request-info.ts";
import { writesWholeObject } from "../../../kube/request-kind.ts";
import { StatusError } from "../../../kube/status.ts";
import { refusedByLabels } from "../../../route/decide.ts";
import { joinSelectors } from "../../../route/plan-query.ts";
import { governingNamespace, governingResource, hasOwnLabels, type ResourceView } from "../../../route/snapshot.ts";
import { identityHeaders } from "../../api-server/headers.ts";
import type { Call, Handler } from "../../call/call.ts";
import { withParameter } from "../../call/query.ts";
import { askReadable } from "../../call/readable.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import { objectPath } from "./missing.ts";
import { labelsInRequest, mediaType, objectsInReply, requestBytes } from "./object-labels.ts";
import { mayChangeLabels } from "./patch-labels.ts";

interface Judged {
  readonly call: ResourceCall;
  /** As the call was decided by. */
  readonly view: ResourceView;
  readonly next: Handler;
}

/** Answers a call whose namespace is the subset's, by the labels of its object. */
export function guardObject(call: ResourceCall, view: ResourceView, next: Handler): Promise<Reply> {
  const judged: Judged = { call, view, next };
  const { verb, subresource } = call.info;
  const isObject = subresource === "";
  const hasObject = writesWholeObject(call.info);
  switch (verb) {
    case "get":
      return isObject && call.method === "GET" ? readObject(judged) : behindStored(judged);
    case "create":
      if (governingResource(call.info) !== call.info) throw nameless(call);
      if (subresource === "binding") return bindObject(judged);
      return isObject ? createObject(judged) : behindStored(judged);
    case "update":
      return hasObject ? updateObject(judged) : behindStored(judged);
    case "patch":
      return hasObject ? patchObject(judged) : behindStored(judged);
    case "delete":
      return behindStored(judged);
    case "deletecollection":
      return deleteCollection(judged);
    default:
      throw new Error(`judging an object: ${verb} is narrowed`);
  }
}

async function readObject({ call, view, next }: Judged): Promise<Reply> {
  const reply = await next(askReadable(call));
  if (reply.status !== 200) return reply;
  const { reply: read, objects } = await objectsInReply(reply);
  if (objects.every(({ labels }) => hasOwnLabels(view, labels))) return read;
  call.record.decision = "refused";
  call.record.reason = "other-subset";
  throw notFound(call.info);
}

async function createObject({ call, view, next }: Judged): Promise<Reply> {
  const body = await requestBytes(call);
  refuseForeign(call, view, labelsInRequest(call, body), "the object in the body");
  return next({ ...call, body });
}

// The labels in the body are those that the object will have, but for subresources, where each kind has rules of its own.
async function updateObject({ call, view, next }: Judged): Promise<Reply> {
  const body = await requestBytes(call);
  const sent: ResourceCall = { ...call, body };
  const labels = labelsInRequest(call, body);
  const isPart = call.info.subresource !== "";
  if (!isPart) refuseForeign(call, view, labels, "the object in the body");
  const stored = await askStored({ call: sent, view, next });
  if (stored.kind === "answer" && (stored.reply.status !== 404 || isPart)) return stored.reply;
  // Where there is none, some kinds are created by an update.
  if (stored.kind === "answer") discardBody(stored.reply.body);
  if (isPart && !hasOwnLabels(view, labels)) return tried({ call: sent, view, next });
  return next(sent);
}

async function patchObject({ call, view, next }: Judged): Promise<Reply> {
  const body = await requestBytes(call);
  const sent: ResourceCall = { ...call, body };
  const stored = await askStored({ call: sent, view, next });
  const isApply = mediaType(call).startsWith("application/apply-patch+");
  if (stored.kind === "answer") {
    if (stored.reply.status !== 404 || !isApply) return stored.reply;
    discardBody(stored.reply.body); // an apply creates what is not there
  }
  return mayChangeLabels(mediaType(call), body) ? tried({ call: sent, view, next }) : next(sent);
}

/** Sends the write only if the API server, asked without effect, says that its result is ours. */
async function tried({ call, view, next }: Judged): Promise<Reply> {
  const { "accept-encoding": _, ...headers } = call.headers;
  const trial = withParameter({ ...call, headers: { ...headers, accept: metadataOnly(call) } }, "dryRun", "All");
  const reply = await next(trial);
  if (reply.status !== 200 && reply.status !== 201) return reply;
  const { objects } = await objectsInReply(reply);
  refuseForeignObjects(call, view, objects, "what it would become");
  return next(call);
}

// The API server puts the labels of a Binding over the pod's.
async function bindObject({ call, view, next }: Judged): Promise<Reply> {
  const body = await requestBytes(call);
  const sent: ResourceCall = { ...call, body };
  const labels = labelsInRequest(call, body);
  const stored = await askStored({ call: sent, view, next });
  if (stored.kind === "answer") return stored.reply;
  refuseForeign(call, view, { ...stored.labels, ...labels }, "what it would become");
  return next(sent);
}

// Whatever is asked of an object that is ours, subresources too: what they do is done to the object.
async function behindStored(judged: Judged): Promise<Reply> {
  const stored = await askStored(judged);
  return stored.kind === "answer" ? stored.reply : judged.next(judged.call);
}

// Exact, and in one request: the API server itself picks what it deletes.
function deleteCollection({ call, view, next }: Judged): Promise<Reply> {
  if (view.labelFilter === undefined) return next(call);
  return next(
    withParameter(call, "labelSelector", joinSelectors(call.info.query.get("labelSelector"), view.labelFilter.labelSelector)),
  );
}

/** What is stored is ours, or the API server has answered otherwise: it is not there, or the caller may not read it. */
type Stored = { readonly kind: "own"; readonly labels: Labels } | { readonly kind: "answer"; readonly reply: Reply };

// Asks for the newest state. Throws Forbidden if it is somebody else's.
async function askStored({ call, view, next }: Judged): Promise<Stored> {
  const target = objectPath(call.info);
  const info = parseRequestInfo("GET", target);
  const headers = { ...identityHeaders(call.headers), accept: metadataOnly(call) };
  const { signal } = call;
  const record: Call["record"] = { info, decision: "forwarded", lock: false };
  const reply = await next({ method: "GET", target, info, headers, body: null, signal, record });
  if (reply.status !== 200) return { kind: "answer", reply };
  const { objects } = await objectsInReply(reply);
  refuseForeignObjects(call, view, objects, "the object");
  return { kind: "own", labels: objects[0]?.labels ?? {} };
}

const METADATA = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

// An error is passed on as it is, and so is asked for in the caller's encoding. Plain JSON for servers that have no such type.
function metadataOnly({ headers }: Call): string {
  const json = `application/json;${METADATA},application/json;q=0.9`;
  return preferredEncoding(headers.accept) === "json" ? json : `application/vnd.kubernetes.protobuf;${METADATA},${json}`;
}

function refuseForeignObjects(call: ResourceCall, view: ResourceView, objects: readonly ItemMeta[], which: string): void {
  for (const { labels } of objects) refuseForeign(call, view, labels, which);
}

function refuseForeign(call: ResourceCall, view: ResourceView, labels: Labels | undefined, which: string): void {
  if (hasOwnLabels(view, labels)) return;
  call.record.decision = "refused";
  call.record.reason = "other-subset";
  const { info } = call;
  const owner = view.ownerOf(governingNamespace(info.group, info.resource, info), labels ?? {});
  throw new StatusError("Forbidden", refusedByLabels(info, owner, `${which}, by its labels,`));
}

// The pod stands in the body alone, and what labels it has stands nowhere.
function nameless({ record }: ResourceCall): StatusError {
  record.decision = "refused";
  record.reason = "not-narrowable";
  const message = `ctrlmesh: create bindings: labels decide whose a pod is, and the path does not name it; create pods/binding instead`;
  return new StatusError("Forbidden", message);
}

// As the API server says it (k8s.io/apimachinery/pkg/api/errors, NewNotFound).
function notFound({ group, resource, name }: ResourceInfo): StatusError {
  const type = group === "" ? resource : `${resource}.${group}`;
  const details = { name, ...(group === "" ? {} : { group }), kind: resource };
  return new StatusError("NotFound", `${type} ${JSON.stringify(name)} not found`, details);
}
