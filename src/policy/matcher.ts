// Finds the rules that match a request. Pure. Invariant: the cost depends on the rules that name its resource
// and namespace, or its URL, and not on the number of all rules. What the proxy cannot see, such as the path
// in a tunnel, matches nothing.
import type { AdmissionRule, HttpRule, RequestMatch, ResourceRule, UrlRule } from "./policy.ts";
import type { Action, AdmissionSubject, EgressTarget, PolicyRequest } from "./policy-request.ts";
import { compileTextMatch } from "./text-match.ts";

export interface Matcher<R> {
  /** The matching rules, in the order of the set. */
  match(request: PolicyRequest): readonly R[];
}

const ALL = "*";
/** The key of rules that name no host, or an expression for it. */
const ANY_HOST = "";
/** Only a rule that names this resource applies to the lock. */
const LEASES = { group: "coordination.k8s.io", resource: "leases" };

/** `index` is the place of the rule in the set. */
interface Indexed<T> {
  readonly index: number;
  readonly part: T;
}

export function createMatcher<R extends { readonly match: RequestMatch }>(rules: readonly R[]): Matcher<R> {
  const byPair = new Map<string, Indexed<ResourceRule>[]>();
  const byUrl = new Map<string, Indexed<UrlRule>[]>();
  const byHost = new Map<string, Indexed<HttpTest>[]>();
  const byAdmission = new Map<string, Indexed<AdmissionRule>[]>();
  for (const [index, { match }] of rules.entries()) {
    for (const part of match.admissions ?? []) {
      for (const name of part.resources) push(byAdmission, name, { index, part });
    }
    for (const part of match.resources) {
      for (const pair of pairsOf(part)) push(byPair, pair, { index, part });
    }
    for (const part of match.urls) push(byUrl, canonicalUrl(part.url), { index, part });
    for (const rule of match.http) {
      const host = rule.host !== undefined && "exact" in rule.host ? rule.host.exact : ANY_HOST;
      push(byHost, host, { index, part: compileHttpRule(rule) });
    }
  }
  return {
    match(request) {
      const { actions, egress, admission, isLock, method } = request;
      const found = new Set<number>();
      for (const action of actions) {
        for (const pair of pairsOfAction(action)) {
          for (const { index, part } of byPair.get(pair) ?? []) if (isAboutAction(part, action, isLock)) found.add(index);
        }
      }
      if (admission !== undefined) {
        for (const name of resourceNamesOf(admission)) {
          for (const { index, part } of byAdmission.get(name) ?? []) if (isAboutReview(part, admission)) found.add(index);
        }
      }
      for (const host of egress === undefined ? [] : [egress.host, ANY_HOST]) {
        for (const { index, part: test } of byHost.get(host) ?? []) if (test(request)) found.add(index);
      }
      for (const url of urlsOfRequest(request)) {
        for (const { index, part } of byUrl.get(url) ?? []) if (has(part.methods, method)) found.add(index);
      }
      return [...found].sort((a, b) => a - b).flatMap((index) => rules[index] ?? []);
    },
  };
}

function push<V>(index: Map<string, V[]>, key: string, value: V): void {
  const values = index.get(key);
  if (values === undefined) index.set(key, [value]);
  else values.push(value);
}

function has(list: readonly string[], value: string): boolean {
  return list.includes(ALL) || list.includes(value);
}

function pairOf(resource: string, namespace: string): string {
  return `${resource} ${namespace}`;
}

function pairsOf({ resources, namespaces, clusterScope }: ResourceRule): Set<string> {
  const scopes = [...namespaces, ...(clusterScope ? [""] : [])];
  return new Set(resources.flatMap((resource) => scopes.map((scope) => pairOf(resource, scope))));
}

function pairsOfAction({ resource, namespace }: Action): string[] {
  const [object = "", ...rest] = resource.split("/");
  const subresource = rest.join("/");
  const resources = [resource, ALL, ...(subresource === "" ? [] : [`${object}/${ALL}`, `${ALL}/${subresource}`])];
  const namespaces = namespace === "" ? [""] : [namespace, ALL];
  return resources.flatMap((name) => namespaces.map((scope) => pairOf(name, scope)));
}

// Without its lock an operator loses its leadership, so a rule about all resources does not mean the lock.
function isAboutAction(rule: ResourceRule, action: Action, isLock: boolean): boolean {
  if (!has(rule.apiGroups, action.group) || !has(rule.verbs, action.verb)) return false;
  return !isLock || (rule.apiGroups.includes(LEASES.group) && rule.resources.includes(LEASES.resource));
}

function urlsOfRequest({ egress, path }: PolicyRequest): string[] {
  if (egress !== undefined) return urlPatternsOf(egress);
  return path === undefined ? [] : urlsOf(path);
}

/** The path itself, and every pattern that contains it. */
function urlsOf(url: string): string[] {
  const patterns = [url, ALL];
  for (let at = url.lastIndexOf("/"); at >= 0; at = at === 0 ? -1 : url.lastIndexOf("/", at - 1)) {
    patterns.push(`${url.slice(0, at)}/${ALL}`);
  }
  return patterns;
}

// A rule's URL and that of a request to another server are compared in one form: scheme and host in lower
// case, no default port, at least the path "/". Paths and queries stay as they were sent.

const ABSOLUTE = /^(https?):\/\/([^/?#]*)(.*)$/is;
/** Longer than the URL of any rule (src/api). Every pattern of a request costs a look-up. */
const MAX_PATTERN_LENGTH = 2_048;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ":80", https: ":443" };

/** A path of the API server stays as it is. */
function canonicalUrl(url: string): string {
  const [, scheme = "", authority = "", rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (scheme === "") return url;
  if (authority === "*") return `${scheme.toLowerCase()}://*`;
  const port = DEFAULT_PORTS[scheme.toLowerCase()] ?? "";
  const host = authority.toLowerCase();
  return `${scheme.toLowerCase()}://${host.endsWith(port) ? host.slice(0, -port.length) : host}${rest.startsWith("/") ? rest : `/${rest}`}`;
}

/** The URL has no query. */
function urlOf({ scheme, host, port, path }: EgressTarget): string {
  const authority = host.includes(":") ? `[${host}]` : host;
  return canonicalUrl(`${scheme}://${authority}:${port}${path ?? "/"}`);
}

/** Every form in which a rule may name it: the URL with and without its query, and the patterns above it. */
export function urlPatternsOf(target: EgressTarget): string[] {
  const url = urlOf(target);
  const patterns = target.query === "" ? [url] : [url, url + target.query];
  const start = target.scheme.length + "://".length;
  for (let at = url.lastIndexOf("/", MAX_PATTERN_LENGTH); at >= start; at = url.lastIndexOf("/", at - 1))
    patterns.push(`${url.slice(0, at)}/*`);
  return [...patterns, `${target.scheme}://*`];
}

// Reviews match as kube-apiserver matches the rules of webhook configurations (k8s.io/apiserver,
// admission/plugin/webhook/predicates/rules).

/** The entries of a rule that name the resource of the review. */
function resourceNamesOf({ resource, subresource }: AdmissionSubject): readonly string[] {
  const plain = [resource, ALL].map((name) => (subresource === "" ? name : `${name}/${subresource}`));
  return [...plain, `${resource}/${ALL}`, `${ALL}/${ALL}`];
}

/** Compares everything but the resource. */
function isAboutReview(rule: AdmissionRule, { group, version, operation, isNamespaced }: AdmissionSubject): boolean {
  const isInScope = rule.scope === ALL || (rule.scope === "Namespaced") === isNamespaced;
  return isInScope && has(rule.apiGroups, group) && has(rule.apiVersions, version) && has(rule.operations, operation);
}

/** False if the request is not to another server. */
type HttpTest = (request: PolicyRequest) => boolean;

function compileHttpRule({ host, path, method, headers }: HttpRule): HttpTest {
  const isHost = host === undefined ? undefined : compileTextMatch(host);
  const isPath = path === undefined ? undefined : compileTextMatch(path);
  const wanted = headers.map(({ name, value }) => ({ name: name.toLowerCase(), value }));
  return ({ egress, method: sent }) => {
    if (egress === undefined || (method !== undefined && method !== sent)) return false;
    if (isHost?.(egress.host) === false) return false;
    if (isPath !== undefined && (egress.path === undefined || !isPath(egress.path))) return false;
    return wanted.every(({ name, value }) => [egress.headers[name]].flat().includes(value));
  };
}
