// Changes query parameters of a request line and reads the line again, so that `info` always belongs to `target`. Used by
// the layers that narrow or rename.
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { Call } from "./handler.ts";

/** The call with a query parameter set; all values that it had before are replaced, other parameters stay. */
export function withParameter(call: Call, name: string, value: string): Call {
  const query = new URLSearchParams(call.info.query);
  query.set(name, value);
  return withTarget(call, `${call.info.path}?${query}`);
}

/** The call with another request line. */
export function withTarget(call: Call, target: string): Call {
  return { ...call, target, info: parseRequestInfo(call.method, target) };
}
