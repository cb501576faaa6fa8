// Reads the request line into a RequestInfo for the layers behind. Invariant: what is decided about is what is sent: a
// target that the API server might read differently ends here as 400 (kube/request-info.ts), and `info` belongs to
// `method` and `target` of the very call that goes on.
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { Handler, RawHandler } from "./handler.ts";

/** From a raw call to a call. */
export function requestInfo(next: Handler): RawHandler {
  return async (raw) => {
    const info = parseRequestInfo(raw.method, raw.target);
    raw.record.info = info;
    return next({ ...raw, info });
  };
}
