// Finds the rules that match a request. Pure. Invariant: the cost does not depend on the number of all rules,
// nor on the length of what was sent. What the proxy cannot see, such as the path in a tunnel, matches nothing.
import { bytesOf, pathForm, readingsOf } from "./path-form.ts";
import type { AdmissionRule, HttpRule, RequestMatch, TextMatch, UrlRule } from "./policy.ts";
import type { AdmissionSubject, EgressTarget, PolicyRequest } from "./policy-request.ts";
import { createResourceIndex, has, inOrder } from "./resource-index.ts";
import { compileTextMatch, type TextTest } from "./text-match.ts";
import { createUrlIndex } from "./url-index.ts";

export interface Matcher<R> {
  /** The matching rules, in the order of the set. */
  match(request: PolicyRequest): readonly R[];
}

const ALL = "*";
/** The key of rules that name no host, or an expression for it. */
const ANY_HOST = "";

/** `index` is the place of the rule in the set. */
interface Indexed<T> {
  readonly index: number;
  readonly part: T;
}

export function createMatcher<R extends { readonly match: RequestMatch }>(rules: readonly R[]): Matcher<R> {
  const resources = createResourceIndex(rules);
  const urls = createUrlIndex<Indexed<UrlRule>>();
  const byHost = new Map<string, Indexed<HttpTest>[]>();
  const byAdmission = new Map<string, Indexed<AdmissionRule>[]>();
  for (const [index, { match }] of rules.entries()) {
    for (const part of match.admissions ?? []) {
      for (const name of part.resources) push(byAdmission, name, { index, part });
    }
    for (const part of match.urls) urls.add(part.url, { index, part });
    for (const rule of match.http) {
      const host = rule.host !== undefined && "exact" in rule.host ? rule.host.exact : ANY_HOST;
      push(byHost, host, { index, part: compileHttpRule(rule) });
    }
  }
  return {
    match(request) {
      const { actions, egress, admission, method } = request;
      if (actions.length > 0) return resources.find(request);
      const found = new Set<number>();
      if (admission !== undefined) {
        for (const name of resourceNamesOf(admission)) {
          for (const { index, part } of byAdmission.get(name) ?? []) if (isAboutReview(part, admission)) found.add(index);
        }
      }
      const paths = byHost.size === 0 ? [] : pathsOf(request);
      for (const host of egress === undefined ? [] : [egress.host, ANY_HOST]) {
        for (const { index, part: test } of byHost.get(host) ?? []) if (test(request, paths)) found.add(index);
      }
      for (const { index, part } of urls.find(request)) if (has(part.methods, method)) found.add(index);
      return inOrder(rules, found);
    },
  };
}

function push<V>(index: Map<string, V[]>, key: string, value: V): void {
  const values = index.get(key);
  if (values === undefined) index.set(key, [value]);
  else values.push(value);
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

/** @param paths the readings of the path, in their form with the final slash; none for a tunnel */
type HttpTest = (request: PolicyRequest, paths: readonly string[]) => boolean;

function compileHttpRule({ host, port, path, method, headers }: HttpRule): HttpTest {
  const isHost = host === undefined ? undefined : compileHostMatch(host);
  const isPath = path === undefined ? undefined : compilePathMatch(path);
  const wanted = headers.map(({ name, value }) => ({ name: name.toLowerCase(), value }));
  return ({ egress, method: sent }, paths) => {
    if (egress === undefined || (method !== undefined && method !== sent)) return false;
    if (port !== undefined && port !== egress.port) return false;
    if (isHost?.(egress) === false) return false;
    if (isPath !== undefined && !paths.some(isPath)) return false;
    return wanted.every(({ name, value }) => {
      const sentValue = egress.headers[name];
      return value === undefined ? sentValue !== undefined : [sentValue].flat().includes(value);
    });
  };
}

/** An expression may be about the port too, as in rules that list hosts (egress-rules.ts). */
function compileHostMatch(match: TextMatch): (target: EgressTarget) => boolean {
  const isText = compileTextMatch(match);
  return ({ host, port }) => isText(host) || ("regex" in match && isText(`${host}:${port}`));
}

/** Longer than the path of any rule (src/api), also if all of it is escaped. */
const MAX_PATH_LENGTH = 5_000;

function pathsOf({ egress }: PolicyRequest): readonly string[] {
  if (egress?.path === undefined) return [];
  const { path } = egress;
  return readingsOf(path).map((reading) => {
    const form = pathForm(path, MAX_PATH_LENGTH, reading);
    return path.endsWith("/") && form !== "/" ? `${form}/` : form;
  });
}

/** Only an expression sees whether the path has a final slash. */
function compilePathMatch(match: TextMatch): TextTest {
  if ("regex" in match) return compileTextMatch(match);
  const wanted = pathForm(bytesOf(match.exact));
  return (path) => path === wanted || path === `${wanted}/`;
}
