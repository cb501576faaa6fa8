// Serves nothing to a caller that `subsetDefaultOnlyUserAgents` excludes from this subset (marked by the `caller` layer). Lists are
// empty with a real resourceVersion and watches idle, so that informers neither hang nor crash; all else about objects is 403 with
// the rule's name. Discovery, access reviews and the lock pass: an operator without its lock stops all its other clients too.
import type { Clock, Random } from "../../base/clock.ts";
import { createListFilter } from "../../kube/codec/list-filter.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { readFrame } from "../../kube/codec/watch-frames.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import { isListOrWatch } from "../../kube/request-kind.ts";
import { StatusError } from "../../kube/status.ts";
import { type CallerRules, servesAlike } from "../../route/callers.ts";
import { isReview } from "../../route/decide.ts";
import { joinSelectors } from "../../route/plan-query.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { NO_OBJECT } from "../../route/table.ts";
import { type Handler, isResourceCall, type Layer, type ResourceCall, withParameter } from "../call/call.ts";
import { askReadableCollection, filterReply } from "../call/readable.ts";
import { endWhen } from "../filter/end-when.ts";
import { expiredFrame, expiredWatch } from "../filter/expired.ts";
import { frameStream, listStream } from "../filter/filtered-body.ts";
import type { StreamMetrics } from "../filter/stream-metrics.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { createListedShapes } from "../relist/listed-shapes.ts";
import type { Session } from "../session/session.ts";
import { collectionOf, continuesFromList, showsAll } from "./isolate/collection.ts";

export interface ExcludedCallersDeps {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: StreamMetrics;
}

/** The API server sends no object that the proxy would only drop. */
const NOTHING = formatTerms(NO_OBJECT);
/** Idle watches end over this time once the list of callers changes. */
const JITTER_MS = 1_000;

/** Makes the layer. */
export function excludedCallers({ session, clock, random, metrics }: ExcludedCallersDeps): Layer {
  // Only a list that was empty by the rule in force lets a watch go on: whoever was served before has to list again.
  const listed = createListedShapes(clock);
  const changed = (now: CallerRules, before: CallerRules | undefined) => before !== undefined && !servesAlike(before, now);
  session.onChange(({ snapshot }, before) => {
    if (changed(snapshot, before?.snapshot)) listed.forget(() => true);
  });

  const idle = (source: ByteSource, encoding: Encoding, decidedBy: CallerRules | undefined): ByteSource => {
    const frames = frameStream(source, encoding, (frame) => {
      const { type } = readFrame(encoding, frame);
      return type === "BOOKMARK" || type === "ERROR" ? frame : undefined;
    });
    const end = {
      onChange: (listener: () => void) =>
        session.onChange(({ snapshot }) => {
          if (changed(snapshot, decidedBy)) clock.after(random() * JITTER_MS, listener);
        }),
      isOver: () => session.current !== undefined && changed(session.current.snapshot, decidedBy),
    };
    return endWhen(frames, end, { lastFrame: expiredFrame(encoding) });
  };
  const empty = (source: ByteSource, encoding: Encoding): ByteSource =>
    listStream(
      source,
      createListFilter(encoding, () => false),
      (bytes) => metrics.filteredBytes.inc(bytes),
    );

  const serveNothing = async (call: ResourceCall, next: Handler): Promise<Reply> => {
    const { record, info } = call;
    const decidedBy = session.current && rulesOf(session.current.snapshot);
    const collection = collectionOf(call);
    if (continuesFromList(call) && !listed.mayContinue(collection, info.query.get("resourceVersion") ?? "")) {
      return expiredWatch(call);
    }
    record.decision = "narrowed";
    record.plan = "labels";
    metrics.narrowed.inc({ plan: "labels" });
    const begunAt = listed.begin();
    const selector = joinSelectors(info.query.get("labelSelector"), NOTHING);
    const asked = askReadableCollection(withParameter(call, "labelSelector", selector));
    const reply = filterReply(call, await next(asked), (body, encoding) =>
      info.verb === "watch" ? idle(body, encoding, decidedBy) : empty(body, encoding),
    );
    if (showsAll(call) && reply.status === 200) listed.listed(collection, begunAt);
    return reply;
  };

  return (next) => (call) => {
    const { excludedBy } = call.record;
    if (excludedBy === undefined || !isResourceCall(call) || call.record.lock || isReview(call.info)) return next(call);
    if (isListOrWatch(call.info)) return serveNothing(call, next);
    return Promise.reject(refusal(call, excludedBy));
  };
}

// Not the whole snapshot: an idle watch would keep its table in memory.
function rulesOf({ subset, callers }: Snapshot): CallerRules {
  return { subset, callers };
}

function refusal({ record, info }: ResourceCall, rule: string): StatusError {
  record.decision = "refused";
  record.reason = "default-only-caller";
  const what = info.name === "" ? info.resource : `${info.resource} "${info.name}"`;
  return new StatusError(
    "Forbidden",
    `ctrlmesh: ${info.verb} ${what}: this user agent is served in the default subset only; spec.route.subsetDefaultOnlyUserAgents of the VirtualApp has ${JSON.stringify(rule)}`,
  );
}
