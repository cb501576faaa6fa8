// Sends a list or watch with what of its plan the API server can filter by itself. Invariants: a refusal of ours is never the
// caller's answer; what is asked to be left out is noted before the request goes, so that its grant makes the client list
// again. Called by narrow.
import {
  type Capabilities,
  joinSelectors,
  NO_NAMESPACE,
  type PlanName,
  planName,
  planQuery,
  type QueryPlan,
} from "../../../route/plan-query.ts";
import { readViewOf } from "../../../route/snapshot.ts";
import type { Feature, ServerFeatures } from "../../api-server/server-features.ts";
import type { Call, Handler } from "../../call/call.ts";
import type { StreamMetrics } from "../../filter/stream-metrics.ts";
import type { PushedDown } from "../../filter/watch-scope.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import { readBody } from "../../http/read-body.ts";
import type { Collection, Resync } from "../../relist/resync.ts";
import type { Session } from "../../session/session.ts";
import { enforcedNow } from "./admission.ts";
import type { Pages } from "./pages.ts";
import type { PlanEntry, PlanLog } from "./plan-log.ts";
import { fitQuery, type PushQuery, plainQuery, pushedBy, pushQuery, withPushQuery } from "./push-query.ts";

export interface PushDownDeps {
  readonly session: Session;
  readonly resync: Resync;
  readonly metrics: StreamMetrics;
  readonly features: ServerFeatures;
  readonly plans: PlanLog;
  readonly pages: Pages;
}

/** The answer, and what was asked for it. */
export interface Sent {
  readonly reply: Reply;
  readonly plan: PlanName;
  readonly pushed: PushedDown;
}

export type PushDown = (call: Call, collection: Collection, plan: QueryPlan, next: Handler) => Promise<Sent>;

/** What an API server says of a selector; a longer error is about something else, and would not be a Status. */
const MAX_ERROR_BYTES = 1024 * 1024;

export function createPushDown({ session, resync, metrics, features, plans, pages }: PushDownDeps): PushDown {
  const noteHidden = (collection: Collection, { only, excluded, shards }: PushQuery) => {
    resync.leftOut.noteExcluded(collection, excluded);
    if (only !== undefined) resync.leftOut.noteOnly(collection, only);
    if (shards !== undefined) resync.leftOut.noteRanges(collection, shards.ranges);
  };

  return async (asked, collection, desired, next) => {
    const view = readViewOf(enforcedNow(session).view(collection.group, collection.resource));
    const scope = desired.namespaces === undefined ? "unknown" : "namespaced";
    const replan = (capabilities: Capabilities) => planQuery(view, scope, capabilities);
    const without = () => (desired.only === undefined ? desired : replan({ oneNamespace: false }));
    const { call, plan } = asked.info.query.get("continue")
      ? pages.resume(asked, collection, desired, without)
      : { call: asked, plan: desired };
    const planned = pushQuery(call, plan, (feature) => features.lackOf(collection, feature));
    const query = fitQuery(call, planned, replan);
    noteHidden(collection, query);
    const isOfOne = query.only !== undefined && query.only !== NO_NAMESPACE;
    if (isOfOne && call.info.query.has("limit")) pages.began(collection, query.only);

    const served = (reply: Reply, by: PushQuery): Sent => {
      const name = planName(by.plan, by.labelSelector !== undefined);
      call.record.plan = name;
      metrics.pushdown.inc({ plan: name });
      plans.record({ ...entryOf(call, collection, plan, by), plan: name, status: reply.status });
      return { reply, plan: name, pushed: pushedBy(by) };
    };
    const first = await next(withPushQuery(call, query));
    const blamed = query.pushes.at(-1);
    if (blamed === undefined) return served(first, query);
    const { isRefused, reply } = await judge(first, blamed);
    if (!isRefused) return served(reply, query);
    // It may be ours that the server does not like, or the caller's own: asking again without ours tells.
    discardBody(reply.body);
    const plain = plainQuery(query);
    const second = await next(withPushQuery(call, plain));
    // "Too long" is said of this one URL, most of which may be the caller's.
    const isTooLong = reply.status === 414 || reply.status === 431;
    if (!isTooLong && !isRefusal(second.status)) features.lacks(collection, blamed, "refused");
    return served(second, plain);
  };
}

// Codes by which a server, or what stands in front of it, turns a query away.
function isRefusal(status: number): boolean {
  return status === 400 || status === 414 || status === 431;
}

// kube-apiserver answers a shard selector that it cannot read with a 500, in any encoding.
async function judge(reply: Reply, blamed: Feature): Promise<{ readonly isRefused: boolean; readonly reply: Reply }> {
  if (reply.status !== 500 || blamed !== "shards") return { isRefused: isRefusal(reply.status), reply };
  const body = await readBody(reply.body, MAX_ERROR_BYTES);
  return { isRefused: Buffer.from(body).includes("shard selector"), reply: { ...reply, body } };
}

function entryOf(
  { info }: Call,
  { group, resource }: Collection,
  plan: QueryPlan,
  by: PushQuery,
): Omit<PlanEntry, "plan" | "status"> {
  const chars = (name: string, added: string | undefined) => {
    const own = info.query.get(name);
    return added === undefined ? (own ?? "").length : joinSelectors(own, added).length;
  };
  return {
    group,
    resource,
    verb: info.verb,
    selectorChars: {
      label: chars("labelSelector", by.labelSelector),
      field: chars("fieldSelector", by.fieldSelector),
      shard: chars("shardSelector", by.shards?.selector),
    },
    namespaces: plan.namespaces ?? { own: 0, foreign: 0 },
    notSent: by.notSent,
  };
}
