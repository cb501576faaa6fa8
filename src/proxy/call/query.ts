// Changes query parameters of a request line and reads the line again, so that `info` always belongs to `target`. Used by
// the layers that narrow or rename.
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { Call } from "./call.ts";

/** The call with a query parameter set; all values that it had before are replaced, other parameters stay. */
export function withParameter(call: Call, name: string, value: string): Call {
  const query = new URLSearchParams(call.info.query);
  query.set(name, value);
  return withQuery(call, query);
}

/** The call with another query. */
export function withQuery(call: Call, query: URLSearchParams): Call {
  return withTarget(call, `${call.info.path}?${query}`);
}

/** The call for the same resource in one namespace, with another query. */
export function inNamespace(call: Call, namespace: string, query: URLSearchParams): Call {
  const { info } = call;
  if (info.kind !== "resource") return call;
  const root = info.group === "" ? "/api" : `/apis/${info.group}`;
  return withTarget(call, `${root}/${info.version}/namespaces/${encodeURIComponent(namespace)}/${info.resource}?${query}`);
}

/** The call with another request line. */
export function withTarget(call: Call, target: string): Call {
  return { ...call, target, info: parseRequestInfo(call.method, target) };
}
