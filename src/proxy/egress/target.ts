// Reads where a client of the forward proxy wants to go. Pure. Invariants: what the rules judge is what is
// sent; a name or an address has one form here; a text that servers may read differently is refused.
import type { IncomingHttpHeaders } from "node:http";
import { canonicalHost } from "../../base/host-name.ts";
import type { EgressTarget } from "../../policy/policy-request.ts";
import { EgressError } from "./egress-error.ts";

/** KusionStack's clients send plain HTTP to the proxy and name the server here. Never sent on. */
export const REAL_ENDPOINT = "mesh-real-endpoint";

const URL_PARTS = /^(https?):\/\/([^/?#\s]*)([^?#\s]*)(\?[^#\s]*)?$/i;
/** Some servers decode a separator first, or take what follows ";" for a parameter of the segment. */
const DOT_SEGMENT = /(^|[/\\]|%2f|%5c)(\.|%2e){1,2}([/\\;]|%2f|%5c|$)/i;

/** @throws EgressError if the request names no server in a form that this proxy reads */
export function targetOf(method: string, target: string, headers: IncomingHttpHeaders): EgressTarget {
  if (method === "CONNECT") return tunnelTarget(target);
  const endpoint = headers[REAL_ENDPOINT];
  return { ...(endpoint === undefined ? absoluteTarget(target) : endpointTarget(String(endpoint), target)), headers };
}

function tunnelTarget(target: string): EgressTarget {
  const [, host = "", port = ""] = /^(.*):(\d{1,5})$/.exec(target) ?? [];
  return { scheme: "https", ...serverOf(host, port, target), path: undefined, query: "", headers: {} };
}

type Plain = Omit<EgressTarget, "headers">;

function absoluteTarget(target: string): Plain {
  const [, scheme = "", authority = "", path = "", query = ""] = URL_PARTS.exec(target) ?? [];
  if (scheme === "") {
    throw invalid("this is a forward proxy: send CONNECT host:port, an absolute URL, or the header Mesh-Real-Endpoint");
  }
  const [, host = "", port = ""] = /^(.*?)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const isSecure = scheme.toLowerCase() === "https";
  const server = serverOf(host, port || (isSecure ? "443" : "80"), authority);
  if (DOT_SEGMENT.test(path)) throw invalid("the path has a segment . or .., which servers read differently");
  return { scheme: isSecure ? "https" : "http", ...server, path: path === "" ? "/" : path, query };
}

/** The header has the whole URL, as KusionStack's clients send it, or a prefix of the request's. */
function endpointTarget(endpoint: string, target: string): Plain {
  const base = absoluteTarget(endpoint);
  const requestTarget = absoluteTarget(target.startsWith("/") ? `http://origin${target}` : target);
  const path = requestTarget.path === "/" ? base.path : `${base.path?.replace(/\/$/, "")}${requestTarget.path}`;
  return { ...base, path, query: base.query === "" ? requestTarget.query : base.query + requestTarget.query.replace("?", "&") };
}

function serverOf(host: string, port: string, text: string): Pick<EgressTarget, "host" | "port"> {
  const number = Number(port);
  const name = canonicalHost(host);
  if (name === undefined || number < 1 || number > 65_535) {
    throw invalid(`${JSON.stringify(text.slice(0, 300))} is not host:port`);
  }
  return { host: name, port: number };
}

function invalid(what: string): EgressError {
  return new EgressError("bad-request", `ctrlmesh egress: ${what}`);
}
