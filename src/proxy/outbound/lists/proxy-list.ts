// What all lists need: small lists that the proxy itself sends as the caller, the report of their versions,
// and the view that filters them. Invariant: for the move log a list is under way until its version is known
// or its answer is over, since it may lack what moves meanwhile.
import type { MeshError } from "../../../base/errors.ts";
import { type Encoding, readListMeta } from "../../../kube/codec/codec.ts";
import { isBucket } from "../../../kube/place.ts";
import type { Version } from "../../../kube/resource-version.ts";
import { StatusError } from "../../../kube/status.ts";
import type { GroupResource } from "../../../kube/types.ts";
import type { OpenList } from "../../../mesh/moves/known.ts";
import type { ResourceLog } from "../../../mesh/moves/resource-log.ts";
import { RESOURCE_MOVES } from "../../../mesh/ownership/decide.ts";
import type { Enforced } from "../../../mesh/ownership/enforced.ts";
import type { ListSize } from "../../../mesh/ownership/plan-lists.ts";
import { joinSelectors } from "../../../mesh/ownership/plan-query.ts";
import { isNamespaces, type ResourceView, readViewOf } from "../../../mesh/ownership/snapshot.ts";
import {
  askReadableCollection,
  type Handler,
  inNamespace,
  type ResourceCall,
  readableEncoding,
  withQuery,
} from "../../call/call.ts";
import { notRenewed, renewalFailed } from "../../filter/renewal.ts";
import { asSource, type ByteSource, discardBody, readBody } from "../../http/byte-stream.ts";
import type { Reply, ReplyHeaders } from "../../http/handler.ts";
import { enforcedNow, type Session } from "../../session/session.ts";

/** What a list of one object shows of its collection. */
interface MeasuredList {
  readonly headers: ReplyHeaders;
  readonly encoding: Encoding;
  /** The API server's newest; undefined if it cannot be compared. */
  readonly version: Version | undefined;
  /** Undefined if the API server did not count. */
  readonly size: ListSize | undefined;
}

type ErrorOf = (what: string, status: number) => MeshError;

/** Bound of the body of a list of one object. An object has at most 1.5 MB. */
const MAX_MEASURE_BYTES = 4 * 1024 * 1024;

/** @param namespace limits the list: the API server reads fewer objects, and does not count them */
export async function measureList(
  call: ResourceCall,
  list: Handler,
  errorOf: ErrorOf,
  namespace?: string,
): Promise<MeasuredList> {
  const { body, encoding, headers: all } = checkedList(await listOne(call, list, namespace), errorOf);
  const bytes = await readBody(body, MAX_MEASURE_BYTES);
  const { version, continues, remaining } = readListMeta(encoding, bytes);
  const { "content-length": _, etag: _tag, ...headers } = all;
  const items = continues ? remaining && remaining + 1 : 1;
  const size = namespace !== undefined || items === undefined ? undefined : { items, bytes: items * bytes.length };
  return { headers, encoding, version, size };
}

function listOne(call: ResourceCall, list: Handler, namespace: string | undefined): Promise<Reply> {
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

// The caller's selectors, and the form of objects in a Table.
function selectionOf({ info }: ResourceCall): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector", "shardSelector", "includeObject"]) {
    const value = info.query.get(name);
    if (value !== null) query.set(name, value);
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

interface CheckedList extends Pick<MeasuredList, "headers" | "encoding"> {
  readonly body: ByteSource;
}

/** @param expected the only accepted encoding; default: both. @throws the error of `errorOf` */
export function checkedList(reply: Reply, errorOf: ErrorOf, expected?: Encoding): CheckedList {
  const { status, headers, body } = reply;
  const encoding = readableEncoding(reply);
  if (status === 200 && body !== null && encoding !== undefined && encoding === (expected ?? encoding))
    return { body: asSource(body), encoding, headers };
  discardBody(body);
  throw errorOf(`status ${status}, content type ${String(headers["content-type"] ?? "none")}`, status);
}

/** Asks for the newest version of the resource if the move log needs it. @throws MeshError, StatusError */
export async function learnVersion(call: ResourceCall, { learn }: ResourceLog, list: Handler): Promise<void> {
  if (learn === undefined) return;
  const { version } = await measureList(askReadableCollection(call), list, renewalFailed);
  if (version === undefined) throw notRenewed("the version of its resource cannot be compared");
  learn(version);
}

/** Answers a list, which is under way for the move log meanwhile. */
export async function listed(log: ResourceLog, answer: (list: OpenList) => Promise<Reply>): Promise<Reply> {
  const list = log.beginList();
  try {
    const reply = await answer(list);
    if (reply.status !== 200 || reply.body === null) list.end();
    return reply;
  } catch (error) {
    list.end();
    throw error;
  }
}

/** When a client may try again. A handover takes less time, unless the manager waits for a pod. */
export const RETRY_SECONDS = 1;

/** The answer to a call that a handover refuses for now. */
export function handoverRunning(message: string): StatusError {
  const causes = [{ reason: "HandoverRunning", message }];
  const text = `${message}; try again in ${RETRY_SECONDS} s`;
  return new StatusError("ServiceUnavailable", text, { causes, retryAfterSeconds: RETRY_SECONDS });
}

/** The answer to a list or watch of a resource that moves as a whole: the rest of a list would be empty. */
export function resourceMoves(): StatusError {
  return handoverRunning(`ctrlmesh: ${RESOURCE_MOVES}`);
}

/** Returns a function for the view in force at each call. That throws while the resource moves. */
export function readViewNow(session: Session, { group, resource }: GroupResource): () => ResourceView {
  let enforced: Enforced | undefined;
  let view: ResourceView;
  return () => {
    const current = enforcedNow(session);
    if (current !== enforced) {
      enforced = current;
      view = readViewOf(current.view(group, resource));
    }
    if (view.isMoving) throw resourceMoves();
    return view;
  };
}
