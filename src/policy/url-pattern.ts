// URLs of other servers as rules write them and as requests have them. Pure. Invariant: a rule and a request
// are compared in one form: scheme and host in lower case, no default port, at least the path "/". Paths and
// queries stay as they were sent.
import type { EgressTarget } from "./policy-request.ts";

const ABSOLUTE = /^(https?):\/\/([^/?#]*)(.*)$/is;
/** No rule's URL is longer (src/api), and every pattern of a request costs a look-up. */
const MAX_PATTERN_LENGTH = 2_048;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ":80", https: ":443" };

/** The comparable form of a rule's URL. A path of the API server stays as it is. */
export function canonicalUrl(url: string): string {
  const [, scheme = "", authority = "", rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (scheme === "") return url;
  if (authority === "*") return `${scheme.toLowerCase()}://*`;
  const port = DEFAULT_PORTS[scheme.toLowerCase()] ?? "";
  const host = authority.toLowerCase();
  return `${scheme.toLowerCase()}://${host.endsWith(port) ? host.slice(0, -port.length) : host}${rest.startsWith("/") ? rest : `/${rest}`}`;
}

/** The URL of a request without its query. */
export function urlOf({ scheme, host, port, path }: EgressTarget): string {
  const authority = host.includes(":") ? `[${host}]` : host;
  return canonicalUrl(`${scheme}://${authority}:${port}${path ?? "/"}`);
}

/**
 * Every form of a rule's URL that matches the request: the URL with and without its query, and the patterns
 * above it.
 */
export function urlPatternsOf(target: EgressTarget): string[] {
  const url = urlOf(target);
  const patterns = target.query === "" ? [url] : [url, url + target.query];
  const start = target.scheme.length + "://".length;
  for (let at = url.lastIndexOf("/", MAX_PATTERN_LENGTH); at >= start; at = url.lastIndexOf("/", at - 1))
    patterns.push(`${url.slice(0, at)}/*`);
  return [...patterns, `${target.scheme}://*`];
}
