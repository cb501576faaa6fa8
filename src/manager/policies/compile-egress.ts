// The rules of policy objects about other servers than the API server. Pure. Invariant: hosts are in the form
// in which proxies see them. Called by the compilers of the kinds, and for the warnings about rules that
// cannot see into tunnels.
import type { HttpFault } from "../../api/fault-injection.ts";
import type { InterceptRule } from "../../api/intercept-rule.ts";
import type { RateLimiting } from "../../api/rate-limiting.ts";
import { parseServer } from "../../api/server-match.ts";
import type { EgressRule, HttpRule, PolicySet, RuleOrigin, TextMatch, UrlRule } from "../../policy/policy.ts";

type RestRule = NonNullable<RateLimiting["restRules"]>[number];
type HttpMatch = NonNullable<NonNullable<HttpFault["match"]>["httpMatch"]>[number];

/** The methods of the requests that open a tunnel. */
const TUNNEL_METHODS: readonly string[] = ["CONNECT", "*"];

export function compileInterceptRule(rule: InterceptRule, origin: RuleOrigin, mode: EgressRule["mode"]): EgressRule {
  const { interceptType, contentType, contents, methods } = rule;
  return {
    origin,
    mode,
    effect: interceptType === "Whitelist" ? "Allow" : "Deny",
    hosts: contents.flatMap((text) => (contentType === "Regexp" ? { regex: text } : (parseServer(text) ?? []))),
    methods,
  };
}

export function compileRestRule({ url, method }: RestRule): UrlRule {
  const [, scheme = "", authority = "", rest = ""] = /^(https?:\/\/)([^/?]*)(.*)$/.exec(url) ?? [];
  const { host, port } = parseServer(authority) ?? { host: authority };
  const name = host.includes(":") ? `[${host}]` : host;
  return { url: `${scheme}${name}${port === undefined ? "" : `:${port}`}${rest}`, methods: [method] };
}

export function compileHttpMatch({ host, path, method, headers = [] }: HttpMatch): HttpRule {
  return {
    ...(host && { host: textMatchOf(host, (text) => parseServer(text)?.host ?? text) }),
    ...(path && { path: textMatchOf(path, (text) => text) }),
    ...(method === undefined ? {} : { method }),
    headers,
  };
}

function textMatchOf({ exact, regex = "" }: NonNullable<HttpMatch["host"]>, plain: (text: string) => string): TextMatch {
  return exact === undefined ? { regex } : { exact: plain(exact) };
}

/** True if a rule is about other servers, so that it needs the egress listener of the proxy. */
export function needsEgress({ limits, faults, egress }: PolicySet): boolean {
  return egress.length > 0 || [...limits, ...faults].some(({ match }) => match.http.length > 0 || match.urls.some(isAbsolute));
}

function isAbsolute({ url }: UrlRule): boolean {
  return /^https?:/.test(url);
}

/** True if no tunnel matches these methods. */
export function missesTunnels(methods: readonly string[]): boolean {
  return !methods.some((method) => TUNNEL_METHODS.includes(method));
}

/** True if the rule is about HTTPS, and can only match the requests of clients that open no tunnel. */
export function seesNoTunnel({ url, method }: RestRule): boolean {
  return url.startsWith("https:") && (missesTunnels([method]) || !/^https:\/\/[^/?]*(\/\*?)?$/.test(url));
}
