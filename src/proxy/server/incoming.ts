// What the server reads of a request before the layers do: its headers without Node's losses, and whether it must become a tunnel. Called
// by the traffic server.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";

/** True for a request that may become a tunnel. */
export type MayUpgrade = (method: string, target: string) => boolean;

/** The protocol of a request that must become a tunnel. The server ignores every other upgrade, as RFC 9110 allows. */
export function upgradeOf({ method = "GET", url = "", headers }: IncomingMessage, mayUpgrade: MayUpgrade): string | undefined {
  const { upgrade } = headers;
  if (upgrade === undefined || !/^(websocket|spdy\/3\.1)$/i.test(upgrade)) return undefined;
  return mayUpgrade(method, url) ? upgrade : undefined;
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
