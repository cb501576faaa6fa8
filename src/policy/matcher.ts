// Finds the rules that match a request. Pure. Invariant: the cost depends on the rules that name the
// request's resource and namespace, or its URL, and not on the number of all rules. Made once for a set of
// rules; called for every request.

import { isAboutReview, resourceNamesOf } from "./admission-rule.ts";
import { compileHttpRule, type HttpTest } from "./http-rule.ts";
import type { AdmissionRule, RequestMatch, ResourceRule, UrlRule } from "./policy.ts";
import type { Action, PolicyRequest } from "./policy-request.ts";
import { canonicalUrl, urlPatternsOf } from "./url-pattern.ts";

export interface Matcher<R> {
  /** The matching rules, in the order of the set. */
  match(request: PolicyRequest): readonly R[];
}

const ALL = "*";
/** The place of rules that name no host, or an expression for it. */
const ANY_HOST = "";
/** The resource of locks that a rule limits if it names it. */
const LEASES = { group: "coordination.k8s.io", resource: "leases" };

export function createMatcher<R extends { readonly match: RequestMatch }>(rules: readonly R[]): Matcher<R> {
  const byPlace = new Map<string, { readonly at: number; readonly rule: ResourceRule }[]>();
  const byUrl = new Map<string, { readonly at: number; readonly rule: UrlRule }[]>();
  const byHost = new Map<string, { readonly at: number; readonly test: HttpTest }[]>();
  const byAdmission = new Map<string, { readonly at: number; readonly rule: AdmissionRule }[]>();
  rules.forEach(({ match }, at) => {
    for (const rule of match.admissions ?? []) for (const name of rule.resources) push(byAdmission, name, { at, rule });
    for (const rule of match.resources) for (const place of placesOf(rule)) push(byPlace, place, { at, rule });
    for (const rule of match.urls) push(byUrl, canonicalUrl(rule.url), { at, rule });
    for (const rule of match.http) {
      push(byHost, rule.host !== undefined && "exact" in rule.host ? rule.host.exact : ANY_HOST, {
        at,
        test: compileHttpRule(rule),
      });
    }
  });
  return {
    match(request) {
      const found = new Set<number>();
      for (const action of request.actions) {
        for (const place of placesOfAction(action)) {
          for (const { at, rule } of byPlace.get(place) ?? []) if (isAbout(rule, action, request.isLock)) found.add(at);
        }
      }
      const { egress, admission } = request;
      for (const name of admission === undefined ? [] : resourceNamesOf(admission)) {
        for (const { at, rule } of byAdmission.get(name) ?? []) {
          if (admission !== undefined && isAboutReview(rule, admission)) found.add(at);
        }
      }
      for (const host of egress === undefined ? [] : [egress.host, ANY_HOST]) {
        for (const { at, test } of byHost.get(host) ?? []) if (test(request)) found.add(at);
      }
      for (const url of urlsOfRequest(request)) {
        for (const { at, rule } of byUrl.get(url) ?? []) if (has(rule.methods, request.method)) found.add(at);
      }
      return [...found].sort((a, b) => a - b).flatMap((at) => rules[at] ?? []);
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

function placeOf(resource: string, namespace: string): string {
  return `${resource} ${namespace}`;
}

function placesOf({ resources, namespaces, clusterScope }: ResourceRule): Set<string> {
  const places = [...namespaces, ...(clusterScope ? [""] : [])];
  return new Set(resources.flatMap((resource) => places.map((namespace) => placeOf(resource, namespace))));
}

function placesOfAction({ resource, namespace }: Action): string[] {
  const [object = "", ...rest] = resource.split("/");
  const subresource = rest.join("/");
  const resources = [resource, ALL, ...(subresource === "" ? [] : [`${object}/${ALL}`, `${ALL}/${subresource}`])];
  const namespaces = namespace === "" ? [""] : [namespace, ALL];
  return resources.flatMap((name) => namespaces.map((place) => placeOf(name, place)));
}

// Without its lock an operator loses its leadership, so a rule about all resources does not mean the lock.
function isAbout(rule: ResourceRule, action: Action, isLock: boolean): boolean {
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
