// The layer that goes by who the operator says it is: what the API server is told (userAgentOrPrefix), and whether this
// subset serves the caller at all (subsetDefaultOnlyUserAgents), which it marks for `keep-out`. Invariants: a caller is
// judged by the user agent that it sent, and where the app asks for nothing a call passes as it is.

import { keptOutBy } from "../../route/callers.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import type { Enforced, Session } from "../session/session.ts";
import { endBySnapshot } from "../stream/end-when.ts";
import { isLongRunning } from "../upstream/pools.ts";
import { endReply } from "./end-reply.ts";
import type { Call, Layer } from "./handler.ts";

/** Makes the layer. */
export function caller({ session }: { readonly session: Session }): Layer {
  return (next) => (call) => {
    const snapshot = session.current?.snapshot;
    if (snapshot === undefined) return next(call);
    const userAgent = call.headers["user-agent"] ?? "";
    const rule = keptOutBy(snapshot, userAgent);
    if (rule !== undefined) call.record.keptOutBy = rule;
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

// Watches end by themselves, with a 410, when the list changes.
function hasNoEnd({ info }: Call): boolean {
  return info.kind === "resource" && info.verb !== "watch" && isLongRunning(info);
}

async function untilKeptOut(reply: ReturnType<ReturnType<Layer>>, userAgent: string, then: Snapshot, session: Session) {
  const rule = keptOutBy(then, userAgent);
  const isOver = ({ snapshot }: Enforced) => keptOutBy(snapshot, userAgent) !== rule;
  return endReply(await reply, endBySnapshot(session, isOver));
}
