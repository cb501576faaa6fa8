// Goes by the User-Agent that the operator sent: sets the one for the API server (userAgentOrPrefix), and
// marks callers that subsetDefaultOnlyUserAgents excludes for the layer `excluded-callers`.
import { isEndless, isWatch } from "../../kube/request-kind.ts";
import { excludedBy } from "../../route/callers.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Call, Layer } from "../call/call.ts";
import { endBySnapshot, endReply } from "../filter/end-when.ts";
import type { Enforced, Session } from "../session/session.ts";

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
    return isEndless(call.info) ? untilKeptOut(next(named), userAgent, snapshot, session) : next(named);
  };
}

function userAgentFor(asked: string, sent: string): string {
  return asked.endsWith("/") ? asked + sent : asked;
}

function withUserAgent(call: Call, userAgent: string): Call {
  return { ...call, headers: { ...call.headers, "user-agent": userAgent } };
}

// Watches end by themselves, with a 410, when the list changes.
async function untilKeptOut(reply: ReturnType<ReturnType<Layer>>, userAgent: string, then: Snapshot, session: Session) {
  const rule = excludedBy(then, userAgent);
  const isOver = ({ snapshot }: Enforced) => excludedBy(snapshot, userAgent) !== rule;
  return endReply(await reply, endBySnapshot(session, isOver));
}
