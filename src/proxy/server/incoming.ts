// What the server reads of a request before the pipeline does: its headers without Node's losses, and whether it is an
// upgrade that must become a tunnel.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { parseRequestInfo } from "../../kube/request-info.ts";

const UPGRADED_SUBRESOURCES = new Set(["exec", "attach", "portforward", "proxy"]);

/**
 * The protocol of a request that must be served as a tunnel. Every other upgrade is ignored, as RFC 9110 allows; that of a
 * watch to WebSocket is declined, see websocket-watch.ts.
 */
export function upgradeOf({ method = "GET", url = "", headers }: IncomingMessage): string | undefined {
  const { upgrade } = headers;
  if (upgrade === undefined || !/^(websocket|spdy\/3\.1)$/i.test(upgrade)) return undefined;
  try {
    const info = parseRequestInfo(method, url);
    if (info.kind !== "resource" || !UPGRADED_SUBRESOURCES.has(info.subresource.split("/")[0] ?? "")) return undefined;
    return upgrade;
  } catch {
    return undefined; // the pipeline answers 400
  }
}

/** Node joins repeated headers with commas, but two Impersonate-Group lines are two groups: those keep their lines. */
export function headersOf(req: IncomingMessage): IncomingHttpHeaders {
  const { headers } = req;
  if (!Object.keys(headers).some((name) => name.startsWith("impersonate-"))) return headers;
  const out: IncomingHttpHeaders = { ...headers };
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    if (name.startsWith("impersonate-") && values !== undefined) out[name] = values;
  }
  return out;
}
