// Serves nothing to a caller that `subsetDefaultOnlyUserAgents` excludes. Lists are empty with a real
// resourceVersion and watches idle, so that informers neither hang nor crash. Access reviews and the lock
// pass: an operator without its lock stops all its other clients too.
import type { Clock, Random } from "../../base/clock.ts";
import { createListFilter, type Encoding, readFrame } from "../../kube/codec/codec.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import { isListOrWatch } from "../../kube/request-kind.ts";
import { NEVER, parseResourceVersion } from "../../kube/resource-version.ts";
import { StatusError } from "../../kube/status.ts";
import { isReview } from "../../route/decide.ts";
import { joinSelectors } from "../../route/plan-query.ts";
import { NO_OBJECT } from "../../route/table.ts";
import { excludedText } from "../../route/words.ts";
import {
  askReadableCollection,
  filterReply,
  type Handler,
  isResourceCall,
  type Layer,
  type ResourceCall,
  withParameter,
} from "../call/call.ts";
import { endWhen } from "../filter/end-when.ts";
import { expiredFrame, expiredWatch } from "../filter/expired.ts";
import { frameStream, listStream } from "../filter/filtered-body.ts";
import type { StreamMetrics } from "../filter/stream-metrics.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { type Collection, type OpenList, TOLD_NOTHING } from "../moves/known.ts";
import type { MoveLog } from "../moves/move-log.ts";
import type { Session } from "../session/session.ts";
import { requestOf } from "./lists/collection-request.ts";
import { learnVersion, listed } from "./lists/proxy-list.ts";

export interface ExcludedCallersDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: StreamMetrics;
  readonly session: Session;
  readonly moves: MoveLog;
}

/** The API server sends no object that the proxy would only drop. */
const NOTHING = formatTerms(NO_OBJECT);
/** Idle watches end over this time once the list of callers changes. */
const JITTER_MS = 1_000;

export function excludedCallers({ clock, random, metrics, session, moves }: ExcludedCallersDeps): Layer {
  // Until the list of callers changes, which makes all versions expire.
  const idle = (source: ByteSource, encoding: Encoding, collection: Collection, told: number): ByteSource => {
    const isOver = () => moves.of(collection).since(collection, { version: NEVER, told }).kind === "expired";
    const frames = frameStream(source, encoding, (frame) => {
      const { type, objects } = readFrame(encoding, frame, { versions: true });
      // Nobody may continue from a version that is given out after the change.
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
      // Whoever was served before the list of callers changed has to list again.
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
    return Promise.reject(refusal(call, excludedText(excludedBy, session.current?.snapshot.words)));
  };
}

function refusal({ record, info }: ResourceCall, why: string): StatusError {
  record.decision = "refused";
  record.reason = "default-only-caller";
  const what = info.name === "" ? info.resource : `${info.resource} "${info.name}"`;
  return new StatusError("Forbidden", `ctrlmesh: ${info.verb} ${what}: ${why}`);
}
