// The headers that belong to one connection and are not forwarded (RFC 9110 section 7.6.1). Invariant: a
// client cannot remove a header that says who asks or how long the body is.
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

const NOT_REMOVABLE = new Set(["authorization", "content-length", "content-type", "host"]);

/** The names in a `Connection` header that a client may remove, in lower case. */
export function namedInConnection(value: string): string[] {
  const names = value
    .toLowerCase()
    .split(",")
    .map((name) => name.trim());
  return names.filter((name) => !NOT_REMOVABLE.has(name));
}
