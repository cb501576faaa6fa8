// Headers of requests and answers that pass the egress proxy, as flat lists of names and values that keep
// order, case and repetitions. Pure. Invariant: hop-by-hop headers (RFC 9110 section 7.6.1), those that
// `Connection` names, and those for this proxy stop here.
import type { EgressTarget } from "../../policy/policy-request.ts";
import { REAL_ENDPOINT } from "./target.ts";

const HOP_BY_HOP = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "http2-settings"],
]);
/** The host is that of the target, and Node has already answered `Expect`. */
const FOR_THE_PROXY = new Set(["host", "expect", REAL_ENDPOINT]);
/** `Connection` cannot remove these: an answer or a request would mean something else. */
const NOT_REMOVABLE = new Set(["authorization", "content-length", "content-type", "host"]);

export function requestHeaders(raw: readonly string[], target: EgressTarget): string[] {
  const out = ["Host", hostHeader(target), ...kept(raw, FOR_THE_PROXY)];
  const names = out.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  // Node frames a body by itself for some methods only.
  const isChunked = raw.some((name, at) => at % 2 === 0 && name.toLowerCase() === "transfer-encoding");
  return isChunked && !names.includes("content-length") ? [...out, "Transfer-Encoding", "chunked"] : out;
}

export function answerHeaders(raw: readonly string[]): string[] {
  return kept(raw, new Set());
}

function hostHeader({ scheme, host, port }: EgressTarget): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (scheme === "https" ? 443 : 80) ? name : `${name}:${port}`;
}

function kept(raw: readonly string[], dropped: ReadonlySet<string>): string[] {
  const pairs = raw.flatMap((name, at) => (at % 2 === 0 ? [{ name, lower: name.toLowerCase(), value: raw[at + 1] ?? "" }] : []));
  const named = pairs.flatMap(({ lower, value }) => (lower === "connection" ? value.toLowerCase().split(",") : []));
  const removed = new Set(named.map((name) => name.trim()).filter((name) => !NOT_REMOVABLE.has(name)));
  return pairs.flatMap(({ name, lower, value }) =>
    HOP_BY_HOP.has(lower) || dropped.has(lower) || removed.has(lower) ? [] : [name, value],
  );
}
