// Finds the rules that match a request. Pure. Invariant: the cost depends on the rules that name the
// request's resource and namespace, or its URL, and not on the number of all rules. A part of a rule that the
// proxy cannot see, such as the path inside a tunnel, does not match.
import type { AdmissionRule, HttpRule, RequestMatch, ResourceRule, UrlRule } from "./policy.ts";
import type { Action, AdmissionSubject, PolicyRequest } from "./policy-request.ts";
import { compileTextMatch } from "./text-match.ts";
import { canonicalUrl, urlPatternsOf } from "./url-pattern.ts";

export interface Matcher<R> {
  /** The matching rules, in the order of the set. */
  match(request: PolicyRequest): readonly R[];
}

const ALL = "*";
/** The key of rules that name no host, or an expression for it. */
const ANY_HOST = "";
/** The resource of locks that a rule limits if it names it. */
const LEASES = { group: "coordination.k8s.io", resource: "leases" };

/** A part of a rule, with the rule's place in the set. */
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

/** The key of a resource and a namespace. */
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

// Reviews match as kube-apiserver matches the rules of webhook configurations (k8s.io/apiserver,
// admission/plugin/webhook/predicates/rules).

/** The entries of a rule's `resources` that name the resource of the review. */
function resourceNamesOf({ resource, subresource }: AdmissionSubject): readonly string[] {
  const plain = [resource, ALL].map((name) => (subresource === "" ? name : `${name}/${subresource}`));
  return [...plain, `${resource}/${ALL}`, `${ALL}/${ALL}`];
}

/** True if all but the resource matches. */
function isAboutReview(rule: AdmissionRule, { group, version, operation, isNamespaced }: AdmissionSubject): boolean {
  const isInScope = rule.scope === ALL || (rule.scope === "Namespaced") === isNamespaced;
  return isInScope && has(rule.apiGroups, group) && has(rule.apiVersions, version) && has(rule.operations, operation);
}

/** True if the request is to another server and the rule is about it. */
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
