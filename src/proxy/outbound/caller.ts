// Two layers by the operator's User-Agent. `caller` sets the one for the API server and marks callers that
// subsetDefaultOnlyUserAgents excludes. `excludedCallers` gives them empty lists with a real resourceVersion
// and idle watches, so that informers neither hang nor crash. Access reviews and the lock pass.
import type { ProcessContext } from "../../base/process-context.ts";
import { createListFilter, type Encoding, readFrame } from "../../kube/codec/codec.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import { isEndless, isListOrWatch, isWatch } from "../../kube/request-kind.ts";
import { NEVER, parseResourceVersion } from "../../kube/resource-version.ts";
import { StatusError } from "../../kube/status.ts";
import { type Collection, type OpenList, TOLD_NOTHING } from "../../mesh/moves/known.ts";
import type { MoveLog } from "../../mesh/moves/move-log.ts";
import { excludedBy } from "../../mesh/ownership/callers.ts";
import { isReview } from "../../mesh/ownership/decide.ts";
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import { NO_OBJECT } from "../../mesh/ownership/owners.ts";
import { joinSelectors } from "../../mesh/ownership/plan-query.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { excludedText } from "../../mesh/ownership/words.ts";
import {
  askReadableCollection,
  type Call,
  filterReply,
  type Handler,
  isResourceCall,
  type Layer,
  noteDecision,
  type ResourceCall,
  withParameter,
} from "../call/call.ts";
import { endBySnapshot, endReply, endWhen } from "../filter/end-when.ts";
import { expiredFrame, expiredWatch } from "../filter/expired.ts";
import { frameStream, listStream } from "../filter/filtered-body.ts";
import type { StreamMetrics } from "../filter/stream-metrics.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import type { Session } from "../session/session.ts";
import { requestOf } from "./lists/collection-request.ts";
import { learnVersion, listed } from "./lists/proxy-list.ts";

/** kopf ignores an ADDED event of an object that it handled before (`noticed_by_listing`, kopf 1.45). */
const TELLS_LISTS_APART = "kopf/";

export function caller({ session }: { readonly session: Session }): Layer {
  return (next) => (call) => {
    const snapshot = session.current?.snapshot;
    if (snapshot === undefined) return next(call);
    const userAgent = call.headers["user-agent"] ?? "";
    const rule = excludedBy(snapshot, userAgent);
    if (rule !== undefined) call.record.excludedBy = rule;
    if (isWatch(call.info) && userAgent.includes(TELLS_LISTS_APART)) call.record.tellsListsApart = true;
    const { userAgent: asked } = snapshot.callers;
    const named = asked === "" ? call : withUserAgent(call, userAgentFor(asked, userAgent));
    return isEndless(call.info) ? untilRuleChanges(next(named), userAgent, snapshot, session) : next(named);
  };
}

function userAgentFor(asked: string, sent: string): string {
  return asked.endsWith("/") ? asked + sent : asked;
}

function withUserAgent(call: Call, userAgent: string): Call {
  return { ...call, headers: { ...call.headers, "user-agent": userAgent } };
}

// Breaks off when another rule excludes the caller, or none. Watches do that by themselves, with a 410.
async function untilRuleChanges(reply: Promise<Reply>, userAgent: string, then: Snapshot, session: Session) {
  const rule = excludedBy(then, userAgent);
  const isOver = ({ snapshot }: Enforced) => excludedBy(snapshot, userAgent) !== rule;
  return endReply(await reply, endBySnapshot(session, isOver));
}

export interface ExcludedCallersDeps extends Pick<ProcessContext, "clock" | "random"> {
  readonly metrics: StreamMetrics;
  readonly session: Session;
  readonly moves: MoveLog;
}

/** A label selector for no object. */
const NOTHING = formatTerms(NO_OBJECT);
/** Idle watches end over this time once the list of callers changes. */
const JITTER_MS = 1_000;

export function excludedCallers({ clock, random, metrics, session, moves }: ExcludedCallersDeps): Layer {
  // A watch without events, until the list of excluded callers changes, which makes all versions expire.
  const idle = (source: ByteSource, encoding: Encoding, collection: Collection, told: number): ByteSource => {
    const isOver = () => moves.of(collection).since(collection, { version: NEVER, told }).kind === "expired";
    const frames = frameStream(source, encoding, (frame) => {
      const { type, objects } = readFrame(encoding, frame, { versions: true });
      // No client may continue from a version that it is given after the change.
      if (isOver() || (type !== "BOOKMARK" && type !== "ERROR")) return undefined;
      if (type === "BOOKMARK") moves.of(collection).give(parseResourceVersion(objects[0]?.resourceVersion));
      return frame;
    });
    const onChange = (listener: () => void) => session.onChange(() => clock.after(random() * JITTER_MS, listener));
    return endWhen(frames, { onChange, isOver }, { lastFrame: expiredFrame(encoding) });
  };
  const empty = (source: ByteSource, encoding: Encoding, list: OpenList): ByteSource => {
    const filter = createListFilter(encoding, () => false, { onVersion: list.answered });
    return listStream(source, filter, (bytes) => {
      list.end();
      metrics.filteredBytes.inc(bytes);
    });
  };

  const serveNothing = (call: ResourceCall, next: Handler): Promise<Reply> => {
    const { record, info } = call;
    const { collection, version } = requestOf(call, "cluster");
    const isWatch = info.verb === "watch";
    const told = moves.of(collection).position;
    return listed(moves.of(collection), async (list) => {
      if (isWatch) list.end();
      await learnVersion(call, moves.of(collection), next).catch(() => undefined);
      // A client that was served before the list of callers changed has to list again.
      const known = { version: version ?? NEVER, told: TOLD_NOTHING };
      if (version !== undefined && moves.of(collection).since(collection, known).kind !== "nothing") return expiredWatch(call);
      record.decision = "narrowed";
      record.plan = "labels";
      metrics.narrowed.inc({ plan: "labels" });
      const selector = joinSelectors(info.query.get("labelSelector"), NOTHING);
      const asked = askReadableCollection(withParameter(call, "labelSelector", selector));
      return filterReply(call, await next(asked), (body, encoding) =>
        isWatch ? idle(body, encoding, collection, told) : empty(body, encoding, list),
      );
    });
  };

  return (next) => (call) => {
    const { excludedBy } = call.record;
    if (excludedBy === undefined || !isResourceCall(call) || call.record.lock || isReview(call.info)) return next(call);
    if (isListOrWatch(call.info)) return serveNothing(call, next);
    return Promise.reject(callerRefusal(call, excludedText(excludedBy, session.current?.snapshot.words)));
  };
}

export function callerRefusal({ record, info }: ResourceCall, why: string): StatusError {
  noteDecision(record, "refused", "default-only-caller");
  const what = info.name === "" ? info.resource : `${info.resource} "${info.name}"`;
  return new StatusError("Forbidden", `ctrlmesh: ${info.verb} ${what}: ${why}`);
}
