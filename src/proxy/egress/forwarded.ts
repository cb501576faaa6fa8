// Headers of requests and answers that pass the egress proxy, as flat lists of names and values that keep
// order, case and repetitions. Pure. Invariant: hop-by-hop headers (RFC 9110 section 7.6.1), those that
// `Connection` names, and those for this proxy stop here.
import type { EgressTarget } from "../../policy/policy-request.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";
import { REAL_ENDPOINT } from "./target.ts";

/** The host is that of the target, and Node has already answered `Expect`. */
const FOR_THE_PROXY = new Set(["host", "expect", REAL_ENDPOINT]);

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
  const removed = new Set(pairs.flatMap(({ lower, value }) => (lower === "connection" ? namedInConnection(value) : [])));
  return pairs.flatMap(({ name, lower, value }) =>
    HOP_BY_HOP.has(lower) || dropped.has(lower) || removed.has(lower) ? [] : [name, value],
  );
}
