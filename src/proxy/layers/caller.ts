// The layer that goes by who the operator says it is: what the API server is told (userAgentOrPrefix), and whether this
// subset serves the caller at all (subsetDefaultOnlyUserAgents), which it marks for `keep-out`. Invariants: a caller is
// judged by the user agent that it sent, and where the app asks for nothing a call passes as it is.

import { isEndless, isWatch } from "../../kube/request-kind.ts";
import { excludedBy } from "../../route/callers.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Call, Layer } from "../call/call.ts";
import { endBySnapshot, endReply } from "../filter/end-when.ts";
import type { Enforced, Session } from "../session/session.ts";

/**
 * In the user agent of clients that take what a list brings otherwise than what a watch does: kopf calls its resume handlers for objects
 * that it has listed, and does nothing about an ADDED event of one that was handled before (`noticed_by_listing`, kopf 1.45).
 */
const TELLS_LISTS_APART = "kopf/";

/** Makes the layer. */
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

/** The value of restConfigOverrides.userAgentOrPrefix applied to what the operator sent; "" if it sent none. */
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
