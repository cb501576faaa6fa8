// Finds the rules about an object of the API server. Pure. Invariant: requests that no rule tells apart share
// one result, which is computed once. So a request costs one look-up, whatever the number of rules and of
// names that clients use.
import { isExcepted } from "./exceptions.ts";
import type { RequestException, RequestMatch, ResourceRule } from "./policy.ts";
import { type Action, isNamespaceObject, LEASES, type PolicyRequest } from "./policy-request.ts";

const ALL = "*";
/** Stands for every name that no rule has. */
const OTHER = "?";
/** Results that are kept, and the rules in all of them. */
const MAX_RESULTS = 1_024;
const MAX_KEPT_RULES = 262_144;

/** `index` is the place of the rule in the set. */
interface Indexed {
  readonly index: number;
  readonly part: ResourceRule;
}

/** A rule that matches unless the request is an exception. `at` is the place of the action that it is about. */
interface Excepting {
  readonly index: number;
  readonly at: number;
  readonly except: readonly RequestException[];
}

interface Result<R> {
  /** The places of the rules that match in any case. */
  readonly found: ReadonlySet<number>;
  readonly rules: readonly R[];
  readonly excepting: readonly Excepting[];
}

interface Index {
  /** By resource, then by namespace. */
  readonly byResource: Map<string, Map<string, Indexed[]>>;
  /** The API groups that rules name. */
  readonly groups: Set<string>;
}

export function createResourceIndex<R extends { readonly match: RequestMatch }>(rules: readonly R[]) {
  const built: Index = { byResource: new Map(), groups: new Set() };
  for (const [index, { match }] of rules.entries()) for (const part of match.resources) add(built, { index, part });
  const { byResource } = built;
  const results = new Map<string, Result<R>>();
  let keptRules = 0;

  const compute = ({ actions, isLock }: PolicyRequest): Result<R> => {
    const found = new Set<number>();
    const excepting: Excepting[] = [];
    for (const [at, action] of actions.entries()) {
      const scopes = scopesOf(action);
      for (const resource of resourceNamesOf(action)) {
        const byNamespace = byResource.get(resource);
        for (const scope of byNamespace === undefined ? [] : scopes) {
          for (const { index, part } of byNamespace?.get(scope) ?? []) {
            if (!isAbout(part, action, isLock)) continue;
            if (part.except === undefined) found.add(index);
            else excepting.push({ index, at, except: part.except });
          }
        }
      }
    }
    return { found, rules: inOrder(rules, found), excepting };
  };
  /** Adds the rules of which the request is no exception. Names and users are not part of the key. */
  const withExceptions = ({ found, rules: certain, excepting }: Result<R>, { actions, user = () => "" }: PolicyRequest) => {
    const all = new Set(found);
    for (const { index, at, except } of excepting) {
      const action = actions[at];
      if (action !== undefined && !isExcepted(except, action, user)) all.add(index);
    }
    return all.size === found.size ? certain : inOrder(rules, all);
  };
  return {
    find(request: PolicyRequest): readonly R[] {
      if (byResource.size === 0) return [];
      const key = keyOf(request, built);
      const known = results.get(key);
      const result = known ?? compute(request);
      if (known === undefined) {
        const size = result.rules.length + result.excepting.length;
        if (results.size >= MAX_RESULTS || keptRules + size > MAX_KEPT_RULES) {
          results.clear();
          keptRules = 0;
        }
        results.set(key, result);
        keptRules += size;
      }
      return result.excepting.length === 0 ? result.rules : withExceptions(result, request);
    },
  };
}

/** The rules with these places, in the order of the set. */
export function inOrder<R>(rules: readonly R[], found: ReadonlySet<number>): readonly R[] {
  return [...found].sort((a, b) => a - b).flatMap((index) => rules[index] ?? []);
}

function add({ byResource, groups }: Index, indexed: Indexed): void {
  const { apiGroups, resources, namespaces, clusterScope } = indexed.part;
  for (const group of apiGroups) groups.add(group);
  const scopes = clusterScope ? [...namespaces, ""] : namespaces;
  for (const resource of resources) {
    const byNamespace = byResource.get(resource) ?? new Map<string, Indexed[]>();
    byResource.set(resource, byNamespace);
    for (const scope of scopes) {
      const before = byNamespace.get(scope);
      if (before === undefined) byNamespace.set(scope, [indexed]);
      else before.push(indexed);
    }
  }
}

/** Equal for requests that match the same rules. No name has a NUL, since no path may have one. */
function keyOf({ actions, isLock }: PolicyRequest, { byResource, groups }: Index): string {
  let key = isLock ? "lock" : "";
  for (const action of actions) {
    const { verb, group, resource, namespace } = action;
    const kind = isNamespaceObject(action) ? "\0" : "";
    const named = resourceNamesOf(action).filter((each) => byResource.has(each));
    const name = named.some((each) => each !== ALL) ? resource : OTHER;
    const isOther = namespace !== "" && !named.some((each) => byResource.get(each)?.has(namespace));
    const scope = isOther ? OTHER : namespace;
    key += `${verb}\0${groups.has(group) ? group : OTHER}\0${name}\0${scope}\0${kind}`;
  }
  return key;
}

/** The entries of a rule that name the resource of the action. */
function resourceNamesOf({ resource }: Action): readonly string[] {
  const slash = resource.indexOf("/");
  if (slash < 0) return [resource, ALL];
  return [resource, ALL, `${resource.slice(0, slash)}/${ALL}`, `${ALL}${resource.slice(slash)}`];
}

/** The entries of a rule that name the place of the action. A Namespace is cluster-scoped, and has its own name. */
function scopesOf(action: Action): readonly string[] {
  if (action.namespace === "") return [""];
  return isNamespaceObject(action) ? [action.namespace, ALL, ""] : [action.namespace, ALL];
}

// Without its locks an operator loses its leadership, so a rule about all resources does not mean them.
function isAbout(rule: ResourceRule, action: Action, isLock: boolean): boolean {
  if (!has(rule.apiGroups, action.group) || !has(rule.verbs, action.verb)) return false;
  return !isLock || (rule.apiGroups.includes(LEASES.group) && rule.resources.includes(LEASES.resource));
}

export function has(list: readonly string[], value: string): boolean {
  return list.includes(ALL) || list.includes(value);
}
