// Reads the request line into a RequestInfo for the layers behind. Invariant: what is decided about is what is sent: a
// target that the API server might read differently ends here as 400 (kube/request-info.ts), `info` belongs to `method` and
// `target` of the very call that goes on, and a query that was decided by goes on as it was read.
import { parseRequestInfo, type RequestInfo } from "../../kube/request-info.ts";
import type { Handler, RawHandler } from "../http/handler.ts";

/** From a raw call to a call. */
export function requestInfo(next: Handler): RawHandler {
  return (raw) => {
    const info = parseRequestInfo(raw.method, raw.target);
    raw.record.info = info;
    return next({ ...raw, target: decidesByQuery(info) ? `${info.path}?${info.query}` : raw.target, info });
  };
}

// Whether a collection is listed or watched, and whether it is the lock's, stands in the query.
function decidesByQuery(info: RequestInfo): boolean {
  return info.kind === "resource" && !info.nameInPath && info.query.size > 0;
}
