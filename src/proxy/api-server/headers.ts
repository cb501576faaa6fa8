// Selects the headers that are forwarded. Invariants: hop-by-hop headers, those named in `Connection`, and
// every X-Remote-* header, which only a front proxy may send, stop here; Authorization passes unchanged.
import type { IncomingHttpHeaders } from "node:http";
import type { ReplyHeaders } from "../http/handler.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";

// The proxy's own connection sets the host, and Node has already answered `Expect`.
const NEVER_FORWARDED = new Set([...HOP_BY_HOP, "host", "expect"]);

/** The request's headers as name, value, name, value, ...: what undici takes without a further copy. */
export function forwardedHeaders(headers: IncomingHttpHeaders, keepLength: boolean): string[] {
  const removed = removedBy(headers.connection);
  const out: string[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || NEVER_FORWARDED.has(name) || removed?.has(name) || name.startsWith("x-remote-")) continue;
    if (name === "content-length" && !keepLength) continue;
    if (typeof value === "string") out.push(name, value);
    else for (const one of value) out.push(name, one);
  }
  return out;
}

export function repliedHeaders(headers: IncomingHttpHeaders): ReplyHeaders {
  const removed = removedBy(headers.connection);
  const out: Record<string, string | readonly string[]> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || removed?.has(name)) continue;
    out[name] = value;
  }
  return out;
}

function removedBy(connection: string | readonly string[] | undefined): Set<string> | undefined {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return undefined;
  return new Set(namedInConnection(String(connection)).filter((name) => !name.startsWith("impersonate-")));
}
