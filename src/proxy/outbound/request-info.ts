// Reads the request line into a RequestInfo for the layers behind. Invariants: a target that the API server
// might read differently is a 400 here; a query that decides goes on as it was read.
import { parseRequestInfo, type RequestInfo } from "../../kube/request-info.ts";
import { isLongRunning, isWatch } from "../../kube/request-kind.ts";
import type { Handler, RawHandler } from "../call/call.ts";

/** Added to the time that the client asked for, so that normally the API server ends the watch. */
const MARGIN_MS = 30_000;
/** Without that time the API server ends a watch after 30 to 60 minutes (--min-request-timeout). */
const DEFAULT_MS = 2 * 3_600_000;
/** Longer timers fire immediately. */
const MAX_MS = 2 ** 31 - 1;

export function requestInfo(next: Handler): RawHandler {
  return (raw) => {
    const info = parseRequestInfo(raw.method, raw.target, raw.upgrade);
    const { record } = raw;
    record.info = info;
    if (isLongRunning(info)) record.isLongRunning = true;
    if (isWatch(info)) record.endAfterMs = watchDeadlineMs(info);
    return next({ ...raw, target: decidesByQuery(info) ? `${info.path}?${info.query}` : raw.target, info });
  };
}

// The query of a collection says whether the request is a list or a watch, and whether it is for the lock.
function decidesByQuery(info: RequestInfo): boolean {
  return info.kind === "resource" && !info.nameInPath && info.query.size > 0;
}

/** After how many milliseconds the proxy ends a watch that the API server has not ended. */
export function watchDeadlineMs({ query }: Pick<RequestInfo, "query">): number {
  const seconds = Number(query.get("timeoutSeconds") ?? 0);
  return seconds > 0 ? Math.min(seconds * 1_000 + MARGIN_MS, MAX_MS) : DEFAULT_MS;
}
