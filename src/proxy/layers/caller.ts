// The layer that goes by who the operator says it is: what the API server is told (userAgentOrPrefix), and whether this
// subset serves the caller at all (subsetDefaultOnlyUserAgents), which it marks for `keep-out`. Invariants: a caller is
// judged by the user agent that it sent, and where the app asks for nothing a call passes as it is.

import { excludedBy } from "../../route/callers.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { isLongRunning } from "../api-server/pools.ts";
import { endBySnapshot } from "../filter/end-when.ts";
import type { Call, Layer } from "../http/handler.ts";
import type { Enforced, Session } from "../session/session.ts";
import { endReply } from "./end-reply.ts";

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
    if (rule !== undefined) call.record.keptOutBy = rule;
    if (isWatch(call) && userAgent.includes(TELLS_LISTS_APART)) call.record.tellsListsApart = true;
    const { userAgent: asked } = snapshot.callers;
    const named = asked === "" ? call : withUserAgent(call, userAgentFor(asked, userAgent));
    return hasNoEnd(call) ? untilKeptOut(next(named), userAgent, snapshot, session) : next(named);
  };
}

/** The value of restConfigOverrides.userAgentOrPrefix applied to what the operator sent; "" if it sent none. */
function userAgentFor(asked: string, sent: string): string {
  return asked.endsWith("/") ? asked + sent : asked;
}

function withUserAgent(call: Call, userAgent: string): Call {
  return { ...call, headers: { ...call.headers, "user-agent": userAgent } };
}

function isWatch({ info }: Call): boolean {
  return info.kind === "resource" && info.verb === "watch";
}

// Watches end by themselves, with a 410, when the list changes.
function hasNoEnd({ info }: Call): boolean {
  return info.kind === "resource" && info.verb !== "watch" && isLongRunning(info);
}

async function untilKeptOut(reply: ReturnType<ReturnType<Layer>>, userAgent: string, then: Snapshot, session: Session) {
  const rule = excludedBy(then, userAgent);
  const isOver = ({ snapshot }: Enforced) => excludedBy(snapshot, userAgent) !== rule;
  return endReply(await reply, endBySnapshot(session, isOver));
}
