// Asks the API server, as the caller, whether the object or the namespace of a held call exists: an unknown namespace is either newer
// than the snapshot or not there. Invariant: only a 404 comes out of here, never an object; a call that may create gets a 404 only for
// the namespace. Called by hold.ts.
import { parseRequestInfo, type ResourceInfo } from "../../../kube/request-info.ts";
import { identityHeaders } from "../../api-server/headers.ts";
import { createRecord, type Handler } from "../../call/call.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";

/** The API server's 404 for the object (or for its namespace, see above); undefined if it exists or nobody may say. */
export async function askMissing(
  call: ResourceCall,
  namespace: string,
  signal: CallSignal,
  ask: Handler,
): Promise<Reply | undefined> {
  const target = namesObject(call) ? objectPath(call.info) : `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  const info = parseRequestInfo("GET", target);
  // The 404 goes to the caller as it is, so the question names the caller's encodings.
  const headers = identityHeaders(call.headers, "accept", "accept-encoding");
  try {
    const reply = await ask({ method: "GET", target, info, headers, body: null, signal, record: createRecord(info) });
    if (reply.status === 404) return reply;
    discardBody(reply.body);
    return undefined;
  } catch {
    return undefined; // the call itself will meet the same failure
  }
}

// An object that is missing is no answer to a request that would create it.
function namesObject({ info, headers }: ResourceCall): boolean {
  if (!info.nameInPath || info.verb === "watch") return false;
  return info.verb !== "patch" || !String(headers["content-type"] ?? "").includes("apply-patch");
}

/** The path without the subresource, which other permissions guard and which may do something. */
export function objectPath({ path, segments, subresource }: ResourceInfo): string {
  const behind = subresource === "" ? 0 : subresource.split("/").length;
  return path
    .split("/")
    .slice(0, segments.length - behind + 1)
    .join("/");
}
